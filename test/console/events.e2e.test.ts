import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { EventDraft, JsonObject, Severity } from "../../src/model/event.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import {
  describeInBrowser,
  expectAccessible,
  launchBrowser,
  openConsole,
  setTheme,
  WIDTHS,
  type Theme,
} from "./browser.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A day ago, so that nothing falls out of what the service keeps. */
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 24 * HOUR_MS;
const NASTY = '<img src=x onerror="alert(1)"><script>alert(2)</script>';

function draft(
  type: string,
  timestampMs: number,
  domain: string,
  raw: JsonObject,
  severity: Severity = "info",
): EventDraft {
  return { type, source: `platform_${domain}`, class: "security", severity, timestampMs, raw, enrichment: {} };
}

const EVENTS = [
  ...Array.from({ length: 12 }, (_, index) =>
    draft("access_granted", START_MS + index * MINUTE_MS, "access", {
      user: index % 3 === 0 ? "ada.morin" : "ben.okafor",
      door: "Loading dock",
      method: "badge",
    }),
  ),
  draft("door_held", START_MS + 20 * MINUTE_MS, "access", { door: "Loading dock", duration_s: 41 }, "medium"),
  draft("login_failure", START_MS + 30 * MINUTE_MS, "network", { user: "root", src_ip: "203.0.113.9" }, "high"),
  draft("login_failure", START_MS + 31 * MINUTE_MS, "network", { user: NASTY, src_ip: "203.0.113.9" }, "high"),
  draft("odd_report", START_MS + 32 * MINUTE_MS, "network", {
    message: "x".repeat(5000),
    [NASTY]: NASTY,
    deep: { er: [{ list: [1, 2] }] },
  }),
];

/** More than the pages that the list keeps. */
const QUERIES = 2600;
const queryDrafts = () =>
  Array.from({ length: QUERIES }, (_, index) =>
    draft("dns_query", START_MS - 12 * HOUR_MS + index * 1000, "network", {
      src_ip: "10.20.3.7",
      query: `${index}.example.net`,
    }),
  );

describeInBrowser("events", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer({ settings: { rateLimits: false } }), launchBrowser()]);
    await server.intake.collect([...EVENTS, ...queryDrafts()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const list = (page: Page) => page.getByRole("table", { name: "Events" });
  const rows = (page: Page) => list(page).locator("[data-row]");
  const parameter = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);
  const filterInput = (page: Page) => page.getByRole("combobox", { name: "Filter events" });
  const values = (page: Page) => page.getByRole("complementary", { name: "Values" });

  test("are filtered, walked through and opened by keys", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/events");
    await list(page).getByText("root failed to log in from").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("use");
    await page.getByRole("option", { name: /^user / }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await filterInput(page).inputValue()).toBe("user=");
    await page.keyboard.type("ada");
    await page.getByRole("option", { name: /^ada\.morin/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect.poll(() => parameter(page, "filter")).toBe("raw.user=ada.morin");
    expect(page.url()).toContain("filter=raw.user=ada.morin");
    await page.getByText("4 events", { exact: true }).waitFor();

    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(await list(page).locator("[aria-current]").count()).toBe(1);
    const opened = await page.evaluate(() => (document.activeElement as HTMLElement).dataset["row"]);
    await page.keyboard.press("Space");
    const sent = page.getByRole("list", { name: "What was sent" });
    await sent.getByText("Loading dock").waitFor();
    await expect.poll(() => parameter(page, "event")).toBe(opened);
    await page.keyboard.press("Space");
    await expect.poll(() => sent.count()).toBe(0);

    await page.keyboard.press("F");
    await expect.poll(() => parameter(page, "filter")).toBe("raw.user=ada.morin,type!=access_granted");
    await page.getByText("Nothing matches in this time").waitFor();
    await page.getByRole("button", { name: "4 events if it may be access_granted" }).click();
    await expect.poll(() => rows(page).count()).toBe(4);
    expect(faults).toEqual([]);
    await close();
  });

  test("are filtered by a click on a value, and a click with Shift filters it out", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/events");
    await values(page)
      .getByRole("link", { name: /door_held/ })
      .click();
    await expect.poll(() => parameter(page, "type")).toBe("door_held");
    await expect.poll(() => rows(page).count()).toBe(1);
    await values(page)
      .getByRole("link", { name: /door_held/ })
      .click();
    await expect.poll(() => parameter(page, "type")).toBeNull();
    await values(page)
      .getByRole("link", { name: /dns_query/ })
      .click({ modifiers: ["Shift"] });
    await expect.poll(() => parameter(page, "filter")).toBe("type!=dns_query");
    await page.getByText(`${EVENTS.length} events`, { exact: true }).waitFor();

    await list(page).getByText("was held open for 41 s").click();
    const field = page.locator("li[data-field='raw.door']");
    await field.hover();
    await field.getByRole("button", { name: "Show door as a column" }).click();
    await expect.poll(() => parameter(page, "columns")).toBe("type,raw.door");
    await list(page).getByRole("columnheader", { name: "door" }).waitFor();
    expect(await page.getByRole("link", { name: "Alerts with it" }).getAttribute("href")).toMatch(
      /^\/alerts\?event_id=evt_/,
    );
    expect(await page.getByRole("link", { name: "On the axis" }).getAttribute("href")).toMatch(/^\/axis\?from=.+&to=/);
    await field.hover();
    await field.getByRole("button", { name: "Filter for door Loading dock" }).click();
    await expect.poll(() => parameter(page, "filter")).toBe("type!=dns_query,raw.door=Loading dock");
    await expect.poll(() => rows(page).count()).toBe(13);

    await page.getByRole("button", { name: "Remove type not dns_query" }).click();
    await list(page).getByText("was held open for 41 s").waitFor();
    await page.getByRole("link", { name: "Around it" }).click();
    await expect.poll(() => parameter(page, "filter")).toBeNull();
    await expect.poll(() => parameter(page, "from")).toBe(new Date(START_MS + 15 * MINUTE_MS).toISOString());
    expect(faults).toEqual([]);
    await close();
  });

  test("are cut by a drag over the histogram, and a double click undoes it", async () => {
    const { page, close } = await openConsole(browser, server, "/events?range=2d");
    const picture = page.getByRole("img", { name: /events over time/ });
    const box = (await picture.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => parameter(page, "from")).not.toBeNull();
    expect(parameter(page, "range")).toBeNull();
    await picture.dblclick({ position: { x: 300, y: 20 } });
    await expect.poll(() => parameter(page, "range")).toBe("2d");
    await close();
  });

  test("say what a word means, and that a field does not exist", async () => {
    const { page, close } = await openConsole(browser, server, "/events");
    await filterInput(page).fill("root login_failure");
    await page.keyboard.press("Enter");
    await expect.poll(() => parameter(page, "search")).toBe("root login_failure");
    await page.getByText("Every word must begin a word in some field of the event.").waitFor();
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.getByRole("button", { name: "Remove words root login_failure" }).click();
    await filterInput(page).fill("usr=root");
    await page.keyboard.press("Enter");
    await page.getByText("No event in this time has usr").waitFor();
    await page.getByRole("button", { name: "user", exact: true }).click();
    await expect.poll(() => parameter(page, "filter")).toBe("raw.user=root");
    await expect.poll(() => rows(page).count()).toBe(1);
    await close();
  });

  test("keep few pages, and a row stays where it is while pages come and go", async () => {
    const { page, close } = await openConsole(browser, server, "/events?type=dns_query&columns=raw.query");
    await list(page)
      .getByText(`${QUERIES - 1}.example.net`)
      .first()
      .waitFor();
    const table = list(page);
    const last = table.getByText("asked for 0.example.net");
    let rowsMost = 0;
    const scrollToLast = async () => {
      await table.evaluate((element) => {
        element.scrollTop += 3000;
      });
      rowsMost = Math.max(rowsMost, await rows(page).count());
      return last.count();
    };
    await expect.poll(scrollToLast, { interval: 30 }).toBe(1);
    expect(rowsMost).toBeLessThan(80);
    // Ten pages of two hundred rows, however far it goes.
    const height = await table.evaluate((element) => element.scrollHeight);
    expect(height).toBeLessThan(2100 * 40);

    // Back: pages are added above.
    const seen = await table.evaluate(async (element) => {
      element.scrollTop = 600;
      const { top } = element.getBoundingClientRect();
      const topOf = (one: Element) => one.getBoundingClientRect().top - top;
      for (;;) {
        await new Promise(requestAnimationFrame);
        const rows = [...element.querySelectorAll<HTMLElement>("[data-row]")];
        // Those of before the jump are far below.
        const row = rows.find((one) => topOf(one) > 100 && topOf(one) < 300);
        if (row !== undefined) return { id: row.dataset["row"], top: Math.round(topOf(row) + top) };
      }
    });
    await expect.poll(() => table.evaluate((element) => element.scrollTop)).toBeGreaterThan(3000);
    const { y } = (await table.locator(`[data-row="${seen.id}"]`).boundingBox())!;
    expect(Math.round(y)).toBe(seen.top);
    const first = table.getByText(`asked for ${QUERIES - 1}.example.net`);
    const scrollToFirst = async () => {
      await table.evaluate((element) => {
        element.scrollTop = 0;
      });
      return first.count();
    };
    await expect.poll(scrollToFirst, { interval: 30 }).toBe(1);
    await close();
  });

  test("come live, wait while somebody reads, and those that were skipped are told", async () => {
    const { page, close } = await openConsole(browser, server, "/events?filter=raw.user=live*&range=1h");
    const send = (from: number, to: number) =>
      server.intake.collect(
        Array.from({ length: to - from }, (_, index) =>
          draft("login_failure", Date.now(), "network", { user: `live${from + index}`, src_ip: "192.0.2.1" }),
        ),
      );
    await page.mouse.move(5, 5);
    await page.getByText("Nothing matches in this time").waitFor();
    await page.keyboard.press("l");
    await page.getByText("Live, 0 new events").waitFor();
    await send(0, 3);
    await server.intake.collect([draft("login_failure", Date.now(), "network", { user: "somebody else" })]);
    await list(page).getByText("live2", { exact: true }).waitFor();
    await page.getByText("Live, 3 new events").waitFor();
    await list(page).hover();
    await send(3, 5);
    await page.getByText("Paused while you read: 2 events waiting").waitFor();
    expect(await rows(page).count()).toBe(3);
    await page.keyboard.press(".");
    await expect.poll(() => rows(page).count()).toBe(5);
    await send(5, 605);
    await page.getByText("Paused while you read: 500 events waiting").waitFor();
    await page.getByText("100 skipped to keep up.").waitFor();
    await page.getByRole("button", { name: "Load them" }).click();
    await expect.poll(() => page.getByText("skipped to keep up").count()).toBe(0);
    await page.keyboard.press("l");
    await page.getByText("605 events", { exact: true }).waitFor();
    await close();
  });

  test("are exported to a file", async () => {
    const { page, close } = await openConsole(browser, server, "/events?type=access_granted");
    await page.getByRole("button", { name: "Export" }).click();
    const sheet = page.getByRole("dialog", { name: "Export events" });
    await sheet.getByText("12 rows as far as is known now").waitFor();
    await sheet.getByRole("button", { name: "JSON lines" }).click();
    await sheet.getByRole("button", { name: "Export" }).click();
    const link = sheet.getByRole("link", { name: "Download" });
    await link.waitFor();
    await sheet.getByText(/^12 rows, /).waitFor();
    const waiting = page.waitForEvent("download");
    await link.click();
    const path = await (await waiting).path();
    expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(12);
    await sheet.getByRole("button", { name: "Delete the file" }).click();
    await sheet.getByText("None yet.").waitFor();
    await close();
  });

  test("an event of a link is shown although it is not among the first rows", async () => {
    const { data } = (await server.call("GET", "/v1/events?type=dns_query&search=%220.example.net%22&limit=1")).body;
    const { page, close } = await openConsole(browser, server, `/events?event=${data[0].id}`);
    const linked = page.getByRole("region", { name: "The event of the link" });
    await linked.getByText("0.example.net").first().waitFor();
    // It stays although it is among the first rows of the next question.
    await list(page).getByRole("button", { name: "Time" }).click();
    await list(page).getByText("asked for 0.example.net").waitFor();
    expect(await linked.count()).toBe(1);
    await linked.getByRole("button", { name: "Close the event" }).click();
    await linked.waitFor({ state: "detached" });
    await close();
  });

  test("the list begins at the event of a link", async () => {
    const { data } = (await server.call("GET", "/v1/events?limit=100")).body;
    const [near, far] = [data[80].id, data[99].id];
    const { page, close } = await openConsole(browser, server, `/events?event=${near}`);
    const inSight = (id: string) =>
      expect
        .poll(() =>
          page.evaluate((row) => {
            const box = document.querySelector(`[data-row="${row}"]`)?.getBoundingClientRect();
            return box !== undefined && box.top > 0 && box.bottom < innerHeight;
          }, id),
        )
        .toBe(true);
    await inSight(near);
    await page.getByRole("list", { name: "What was sent" }).waitFor();
    // As a link in the page leads there.
    await page.evaluate((id) => history.pushState({}, "", `/events?event=${id}`), far);
    await inSight(far);
    await close();
  });

  test("what was sent is never markup", async () => {
    const { page, faults, close } = await openConsole(
      browser,
      server,
      "/events?source=platform_network&filter=type!=dns_query,raw.user!=live*&columns=raw.user",
    );
    await list(page).getByText(`Odd report: xxx`).click();
    await page.getByRole("button", { name: /show all 5000 characters/ }).click();
    await list(page).getByText(NASTY).first().waitFor();
    await values(page).getByText(NASTY).first().waitFor();
    expect(await page.locator("img[src=x]").count()).toBe(0);
    expect(faults).toEqual([]);
    await close();
  });

  test("an empty store says how to send the first event", async () => {
    const empty = await openTestServer();
    const { page, close } = await openConsole(browser, empty, "/events");
    await page.getByText("No events yet").waitFor();
    await page.getByText(`curl ${empty.address}/v1/events`).waitFor();
    await expectAccessible(page);
    await close();
    await empty.close();
  });

  test("a key without the scope is told so", async () => {
    const { key } = (
      await server.call("POST", "/v1/keys", { body: { name: "alerts only", scopes: ["alerts:read"], plan: "pro" } })
    ).body.data;
    const { page, close } = await openConsole(browser, server, "/events", { key });
    await page.getByText("Events need the scope events:read.").waitFor();
    await close();
  });

  test.each<[Theme, keyof typeof WIDTHS]>([
    ["dark", "desktop"],
    ["light", "desktop"],
    ["dark", "phone"],
    ["light", "phone"],
  ])("are accessible: %s, %s", async (theme, width) => {
    const { page, close } = await openConsole(browser, server, "/events?filter=type!=dns_query,raw.user!=live*", {
      theme,
      width: WIDTHS[width],
    });
    await setTheme(page, theme);
    await list(page).getByText("was held open for 41 s").click();
    await page.getByRole("list", { name: "What was sent" }).waitFor();
    await expectAccessible(page);
    const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    expect(isTooWide).toBe(false);
    await filterInput(page).fill("u");
    await page.getByRole("option").first().waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    if (width === "desktop") {
      await page.getByRole("button", { name: "Export" }).click();
      await page.getByRole("dialog").getByText("None yet.").waitFor();
    } else {
      await page.getByRole("button", { name: "Values" }).click();
      await page
        .getByRole("dialog")
        .getByRole("link", { name: /ben\.okafor/ })
        .waitFor();
    }
    await expectAccessible(page);
    await close();
  });
});
