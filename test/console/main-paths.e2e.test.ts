import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled, WITH_MOTION } from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";

// The main path of a screen with the keyboard alone, and with the mouse alone. Alerts, the axis, events and rules have theirs in
// their own files; the mouse connects a source and makes a key in screens.e2e.test.ts.

const TABS_MAX = 300;
const searchOf = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);

/** Tabs to a control, forward or back, as a person would who sees it. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.first().waitFor();
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    const key = await target.first().evaluate((element) => {
      const now = document.activeElement;
      if (now === element) return undefined;
      const isBehind = now !== null && (now.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
      return isBehind ? "Shift+Tab" : "Tab";
    });
    if (key === undefined) return;
    await page.keyboard.press(key);
  }
  throw new Error(`Tab does not reach ${String(target)}`);
}
async function pressOn(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press("Enter");
}

describeInBrowser("main paths of the console, by keyboard alone and by mouse alone", () => {
  let server: TestServer;
  let browser: Browser;
  let page: Page;
  let faults: string[];
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer({ settings: { rateLimits: false } }), launchBrowser()]);
    ({ page, faults } = await openConsole(browser, server, "/home", { context: WITH_MOTION }));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    expect(faults).toEqual([]);
  });

  const open = async (path: string) => {
    await page.goto(server.address + path);
    await page.getByRole("main").waitFor();
    await settled(page);
  };
  const goByKeys = async (letter: string, path: string) => {
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await page.waitForURL(`**${path}**`);
    await settled(page);
  };
  const link = (name: string | RegExp) => page.getByRole("link", { name });
  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const call = async (id: string) => {
    const body = { id, from: "101", to: "102", direction: "out", started_at: new Date().toISOString() };
    const { status } = await server.call("POST", "/v1/collect/talk", { body });
    expect([200, 202]).toContain(status);
  };

  test("home, by keyboard: another time, then what is critical", async () => {
    await open("/settings");
    await goByKeys("h", "/home");
    await page.keyboard.press("T");
    await page.getByLabel("Type a time").waitFor();
    await page.keyboard.type("3d");
    await page.keyboard.press("Enter");
    await page.waitForURL(/range=3d/);
    await settled(page);
    await pressOn(page, link(/critical$/));
    await page.waitForURL("**/alerts**");
    expect(searchOf(page)).toMatchObject({ severity: "critical", range: "3d" });
  });

  test("home, by mouse: another time, then a noisy rule", async () => {
    await open("/home");
    await button(/^Last 7 days/).click();
    await page.getByRole("dialog").getByRole("button", { name: "Last 24 hours" }).click();
    await page.waitForURL(/range=24h/);
    await open("/home?range=7d");
    await link(/^access\./)
      .first()
      .click();
    await page.waitForURL(/\/(rules|alerts)/);
  });

  test("flows, by keyboard: a port, a talker, another split, and an hour of the table", async () => {
    await open("/home");
    await goByKeys("f", "/flows");
    await page.keyboard.press("/");
    await page.keyboard.type("port 443");
    await page.keyboard.press("Enter");
    await page.waitForURL(/port=443/);
    await settled(page);
    await pressOn(page, button(/^Show only /));
    await page.waitForURL(/src=/);
    await settled(page);
    const split = page.getByRole("group", { name: "Split by" });
    await pressOn(page, split.getByRole("button", { name: "To", exact: true }));
    await page.waitForURL(/split=dst/);
    await settled(page);
    await pressOn(page, button("Traffic over time as a table"));
    const sheet = page.getByRole("dialog");
    await pressOn(page, sheet.getByRole("table").getByRole("button"));
    await sheet.waitFor({ state: "detached" });
    expect(searchOf(page)).toHaveProperty("from");
  });

  test("flows, by mouse: a talker, another split, a pair, and back", async () => {
    await open("/flows");
    await button(/^Show only /)
      .first()
      .click();
    await page.waitForURL(/src=/);
    await page.getByRole("group", { name: "Split by" }).getByRole("button", { name: "Port", exact: true }).click();
    await page.waitForURL(/split=port/);
    await button(/^Remove /)
      .first()
      .click();
    await expect.poll(() => searchOf(page)["src"]).toBeUndefined();
  });

  test("sources, by keyboard: connect one, see its first line, and go on where you were", async () => {
    await open("/home");
    await goByKeys("s", "/sources");
    await pressOn(page, button("Connect"));
    await pressOn(page, page.getByRole("dialog").getByRole("button", { name: /UniFi Talk/ }));
    await page.getByText("Waiting for the first line…").waitFor();
    await call("by-keyboard");
    await page.getByText(/1 line from Webhook talk\. Understood as/).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await pressOn(page, page.getByRole("main").locator("button[aria-expanded]"));
    await page.getByText("last hour", { exact: true }).waitFor();
  });

  test("settings, by keyboard: make a key and revoke it", async () => {
    await open("/home");
    await pressOn(page, link("Settings"));
    await page.waitForURL("**/settings**");
    await pressOn(page, button("New key"));
    const sheet = page.getByRole("dialog");
    await tabTo(page, sheet.getByLabel("Name"));
    await page.keyboard.type("by keyboard");
    await pressOn(page, sheet.getByRole("button", { name: "Create the key" }));
    await pressOn(page, sheet.getByRole("button", { name: "I have copied it" }));
    await sheet.waitFor({ state: "detached" });
    await pressOn(page, button("What to do with the key by keyboard"));
    await page.getByRole("menu").waitFor();
    await page.keyboard.type("rev");
    await page.keyboard.press("Enter");
    await pressOn(page, sheet.getByRole("button", { name: "Revoke" }));
    await page.getByText("Revoked the key by keyboard.").waitFor();
  });

  test("settings, by mouse: another theme, and the way through the sections", async () => {
    await open("/home");
    await link("Settings").click();
    await button("Retention and disk").click();
    await page.getByRole("heading", { name: "Retention and disk" }).waitFor();
    await button("Appearance").click();
    await page.getByLabel("Theme", { exact: true }).selectOption("Light");
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("light");
    await page.getByLabel("Theme", { exact: true }).selectOption("Dark");
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  });

  test("an entity, by keyboard: found by its name, then its events", async () => {
    await open("/home");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").waitFor();
    await page.keyboard.type("Loading dock");
    await page.getByRole("option", { name: /Loading dock door/ }).waitFor();
    while (!(await page.getByRole("option", { name: /Loading dock door/, selected: true }).isVisible())) {
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    await page.waitForURL("**/entity/door/**");
    await pressOn(page, link("Its events"));
    await page.waitForURL("**/events**");
    expect(searchOf(page)["filter"]).toContain("entity=door:Loading dock");
  });

  test("an entity, by mouse: from a sentence to its page, then to the time axis", async () => {
    await open("/events?type=access_granted");
    await page.getByRole("table").getByRole("link").first().click();
    await page.waitForURL("**/entity/**");
    await page.getByRole("link", { name: "On the time axis", exact: true }).click();
    await page.waitForURL("**/axis**");
    expect(searchOf(page)).toHaveProperty("entity");
  });
});
