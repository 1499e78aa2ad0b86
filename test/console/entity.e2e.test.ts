import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
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
const START_MS = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 24 * 3_600_000;

function draft(
  type: string,
  timestampMs: number,
  domain: string,
  raw: JsonObject,
  severity: Severity = "info",
): EventDraft {
  return { type, source: `platform_${domain}`, class: "security", severity, timestampMs, raw, enrichment: {} };
}

const LAPTOP = { src_ip: "10.20.1.16", src_mac: "02:00:5e:10:00:06", host: "laptop-grace" };
const EVENTS = [
  draft("dhcp_lease", START_MS, "network", { ...LAPTOP, device: "gateway-1" }),
  draft("client_connected", START_MS + MINUTE_MS, "network", {
    ...LAPTOP,
    device: "switch-2",
    user: "grace.lindqvist",
  }),
  ...Array.from({ length: 5 }, (_, index) =>
    draft("dns_query", START_MS + (2 + index) * MINUTE_MS, "network", { ...LAPTOP, query: `${index}.example.org` }),
  ),
  draft("door_forced", START_MS + 9 * MINUTE_MS, "access", { door: "Dock, east/west" }, "high"),
  draft("access_granted", START_MS + 10 * MINUTE_MS, "access", { door: "Dock, east/west", user: "grace.lindqvist" }),
];

describeInBrowser("the page of an entity", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer({ settings: { rateLimits: false } }), launchBrowser()]);
    await server.intake.collect(EVENTS);
    const raised = async () =>
      (await server.call("GET", "/v1/alerts?rule_name=access.door_forced")).body.data.length > 0;
    await vi.waitUntil(raised, { timeout: 100_000, interval: 200 });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const part = (page: Page, name: string) =>
    page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
  const path = (page: Page) => decodeURIComponent(new URL(page.url()).pathname);

  test("says what an address is called, and leads from each number to the list behind it", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/entity/address/10.20.1.16");
    await page.getByRole("heading", { name: "10.20.1.16" }).waitFor();
    await page.getByText("7 events in all").waitFor();
    const head = page.locator("section").first();
    await head.getByRole("link", { name: "laptop-grace" }).waitFor();
    await head.getByRole("link", { name: "02:00:5e:10:00:06" }).waitFor();
    expect(await head.getByRole("link", { name: "gateway-1" }).count()).toBe(0);
    await part(page, "Was called, and seen with").getByText("Latest leases").waitFor();
    await part(page, "Talks to").getByText("No flow from or to it in this time").waitFor();
    await page.getByRole("img", { name: /on one time axis/ }).waitFor();

    await part(page, "Events over time")
      .getByRole("link", { name: /dns_query/ })
      .click();
    await page.getByText("5 events", { exact: true }).waitFor();
    expect(page.url()).toContain("type=dns_query&filter=entity=address:10.20.1.16");
    await page.goBack();
    await part(page, "Was called, and seen with").getByRole("link", { name: "grace.lindqvist" }).click();
    await expect.poll(() => path(page)).toBe("/entity/user/grace.lindqvist");
    await page.getByRole("heading", { name: "grace.lindqvist" }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  test("takes names with commas and slashes, and shows the alerts of a door", async () => {
    const { page, close } = await openConsole(browser, server, "/events?filter=entity=door:Dock\\, east/west");
    await page.getByText("2 events", { exact: true }).waitFor();
    await page.getByRole("table").getByRole("link", { name: "Dock, east/west" }).first().click();
    await page.getByRole("heading", { name: "Dock, east/west" }).waitFor();
    await page.getByText("2 events in all").waitFor();
    const alerts = part(page, "Alerts");
    expect(await alerts.getByRole("listitem").count()).toBeGreaterThan(0);
    expect(await alerts.getByRole("link", { name: /^All \d/ }).getAttribute("href")).toContain(
      "entity=door:Dock,+east/west",
    );
    await page.getByRole("link", { name: "Its events" }).click();
    await page.getByText("2 events", { exact: true }).waitFor();
    await close();
  });

  test("nothing known, a kind that does not exist, and a key that may not see alerts", async () => {
    const { page, close } = await openConsole(browser, server, "/entity/user/nobody");
    await page.getByText("No event names it in this time").waitFor();
    await page.getByText("No alert names it in this time").waitFor();
    await page.goto(`${server.address}/entity/planet/mars`);
    await page.getByText("There is no page for a planet").waitFor();
    await close();

    const { key } = (
      await server.call("POST", "/v1/keys", { body: { name: "events only", scopes: ["events:read"], plan: "pro" } })
    ).body.data;
    const limited = await openConsole(browser, server, "/entity/user/grace.lindqvist", { key });
    await limited.page.getByText("it lacks the scope alerts:read").waitFor();
    await limited.close();
  });

  test.each<[Theme, keyof typeof WIDTHS]>([
    ["dark", "desktop"],
    ["light", "desktop"],
    ["dark", "phone"],
    ["light", "phone"],
  ])("is accessible: %s, %s", async (theme, width) => {
    const { page, close } = await openConsole(browser, server, "/entity/address/10.20.1.16", {
      theme,
      width: WIDTHS[width],
    });
    await setTheme(page, theme);
    await part(page, "Newest events").getByRole("listitem").first().waitFor();
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
    await close();
  });
});
