import type { Browser, CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newAlert } from "../../src/store/testing/new-alert.ts";
import type { EventDraft } from "../../src/model/event.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole } from "./browser.ts";

const EVENTS = 4000;
const ALERTS = 3500;
/** Ten pages of events; twenty pages of alerts out of sight; and a few that are on their way or just left. */
const EVENTS_KEPT_MAX = 2600;
const ALERTS_KEPT_MAX = 2700;
const START_MS = Date.now() - 12 * 3_600_000;

const eventDrafts = (): EventDraft[] =>
  Array.from({ length: EVENTS }, (_, index) => ({
    type: "dns_query",
    source: "platform_network",
    class: "network",
    severity: "info",
    timestampMs: START_MS + index * 1000,
    raw: { src_ip: "10.20.3.7", query: `${index}.example.net` },
    enrichment: {},
  }));

describeInBrowser("long lists", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer({ settings: { rateLimits: false } }), launchBrowser()]);
    await server.intake.collect(eventDrafts());
    for (let at = 0; at < ALERTS; at += 500) {
      const alerts = Array.from({ length: 500 }, (_, index) => {
        const createdAt = START_MS + (at + index) * 1000;
        return newAlert({
          title: `Alert ${at + index}`,
          status: "open",
          createdAt,
          firstEventAt: createdAt,
          lastEventAt: createdAt,
        });
      });
      expect(await server.store.alerts.commit({ alerts, timeline: [] })).toEqual([]);
    }
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const box = (page: Page) => page.locator("[role=table][aria-label=Events], [role=grid][aria-label=Alerts]");
  const row = (page: Page, words: string) => box(page).getByRole("row").filter({ hasText: words });

  /** Scrolls to the end of what is loaded until the text is there. */
  async function scrollTo(page: Page, edge: "start" | "end", words: RegExp): Promise<void> {
    const wanted = box(page).getByText(words);
    await expect
      .poll(
        async () => {
          await box(page).evaluate((element, to) => {
            element.scrollTop = to === "start" ? 0 : element.scrollHeight;
          }, edge);
          // Rows that come move those in sight only in the frame after.
          await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
          return wanted.count();
        },
        { interval: 10, timeout: 60_000 },
      )
      .toBeGreaterThan(0);
  }

  /** Objects with these two properties that the page still holds after a collection of garbage. */
  async function kept(page: Page, one: string, other: string): Promise<number> {
    const protocol: CDPSession = await page.context().newCDPSession(page);
    const { result } = await protocol.send("Runtime.evaluate", { expression: "Object.prototype" });
    const { objects } = await protocol.send("Runtime.queryObjects", { prototypeObjectId: result.objectId! });
    const counted = await protocol.send("Runtime.callFunctionOn", {
      objectId: objects.objectId!,
      functionDeclaration:
        "function (one, other) { return this.filter((each) => Object.hasOwn(each, one) && Object.hasOwn(each, other)).length; }",
      arguments: [{ value: one }, { value: other }],
      returnByValue: true,
    });
    await protocol.detach();
    return counted.result.value as number;
  }

  test("events far from those in sight are forgotten, on the way down and back", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/events?range=24h");
    await row(page, `${EVENTS - 1}.example.net`).waitFor();
    await scrollTo(page, "end", /asked for 0\.example\.net/);
    const atEnd = await kept(page, "enrichment", "raw");
    expect(atEnd).toBeGreaterThan(0);
    expect(atEnd).toBeLessThanOrEqual(EVENTS_KEPT_MAX);
    await scrollTo(page, "start", new RegExp(`asked for ${EVENTS - 1}\\.example\\.net`));
    expect(await kept(page, "enrichment", "raw")).toBeLessThanOrEqual(EVENTS_KEPT_MAX);
    expect(faults).toEqual([]);
    await close();
  });

  test("Home and End go to the first and last event of all, and keys go on from there", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/events?range=24h");
    const current = box(page).locator("[role=row][aria-current=true]");
    await row(page, `${EVENTS - 1}.example.net`).waitFor();
    await page.keyboard.press("End");
    await current.filter({ hasText: "asked for 0.example.net" }).waitFor();
    await expect.poll(async () => (await current.boundingBox())?.y).toBeLessThan(900);
    await page.keyboard.press("k");
    await current.filter({ hasText: "asked for 1.example.net" }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.closest("[role=row]")?.textContent)).toContain(
      "asked for 1.example.net",
    );
    // From the end, pages come above without moving a row.
    await scrollTo(page, "start", /asked for [5-9]\d\d\.example\.net/);
    await page.keyboard.press("Home");
    await current.filter({ hasText: `asked for ${EVENTS - 1}.example.net` }).waitFor();
    await page.keyboard.press("j");
    await current.filter({ hasText: `asked for ${EVENTS - 2}.example.net` }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  test("alerts far from those in sight are forgotten, and read again on the way back", async () => {
    const { page, faults, close } = await openConsole(
      browser,
      server,
      "/alerts?view=all&group=none&sort=created_at&range=24h",
    );
    await row(page, `Alert ${ALERTS - 1}`).waitFor();
    await scrollTo(page, "end", /^Alert 0$/);
    const atEnd = await kept(page, "rule_name", "event_count");
    expect(atEnd).toBeGreaterThan(0);
    expect(atEnd).toBeLessThanOrEqual(ALERTS_KEPT_MAX);
    await page.keyboard.press("End");
    const cursor = page.locator("[role=row][aria-selected=true]");
    const titled = (title: string) => cursor.filter({ has: page.getByText(title, { exact: true }) });
    await titled("Alert 0").waitFor();
    await page.keyboard.press("k");
    await titled("Alert 1").waitFor();
    // Pages in between are asked for again, and have the rows that they had.
    await box(page).evaluate((element) => element.scrollTo(0, 56 * 500));
    await row(page, `Alert ${ALERTS - 501}`).waitFor();
    await page.keyboard.press("Home");
    await titled(`Alert ${ALERTS - 1}`).waitFor();
    expect(faults).toEqual([]);
    await close();
  });
});
