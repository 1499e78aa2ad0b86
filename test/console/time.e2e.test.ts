import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, expectAccessible, launchBrowser, openConsole } from "./browser.ts";

/** A Wednesday at noon in Berlin, where the browser is. */
const NOON = new Date("2026-11-18T11:00:00Z");

describeInBrowser("the time of the console", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    const settings = { timezone: "Europe/Helsinki", siteHours: "mon-fri 07:00-17:00", siteName: "Main Street 4" };
    [server, browser] = await Promise.all([openTestServer({ settings }), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const address = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
  const openPicker = async (page: Page) => {
    await page.keyboard.press("T");
    await page.getByLabel("Type a time").waitFor();
  };
  const open = async (path: string, options: Parameters<typeof openConsole>[3] = {}) => {
    const opened = await openConsole(browser, server, path, options);
    await opened.page.clock.setFixedTime(NOON);
    return opened;
  };

  test("the hours of the site are offered in its own zone, and kept across screens", async () => {
    const { page, faults, close } = await open("/events");
    await openPicker(page);
    await page.getByText("Mon to Fri, 07:00 to 17:00 (Helsinki time)").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Outside site hours, last night" }).click();
    const lastNight = { from: "2026-11-17T15:00:00.000Z", to: "2026-11-18T05:00:00.000Z" };
    await expect.poll(() => address(page)).toEqual(lastNight);
    const range = page.getByRole("button", { name: /Tue 17 Nov 16:00 for 14 h/ });
    // UTC on hover.
    expect(await range.getAttribute("title")).toBe(`${lastNight.from} to ${lastNight.to} (UTC)`);
    await page.getByText("Berlin time", { exact: true }).waitFor();
    for (const key of ["a", "x", "f", "h"]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await expect.poll(() => address(page), { message: key }).toMatchObject(lastNight);
    }
    await openPicker(page);
    await page.getByRole("button", { name: "Site hours today" }).click();
    await expect.poll(() => address(page)).toMatchObject({ from: "2026-11-18T05:00:00.000Z", to: NOON.toISOString() });
    expect(faults).toEqual([]);
    await close();
  });

  test("a time is typed or pasted, and the last five are offered again", async () => {
    const { page, close } = await open("/home");
    const type = async (text: string) => {
      await openPicker(page);
      await page.getByLabel("Type a time").fill(text);
      await page.keyboard.press("Enter");
      await page.getByLabel("Type a time").waitFor({ state: "hidden" });
    };
    await type("yesterday 18:00 for 2h");
    await expect
      .poll(() => address(page))
      .toEqual({ from: "2026-11-17T17:00:00.000Z", to: "2026-11-17T19:00:00.000Z" });
    await type("2026-11-14T19:40:00+05:30/2026-11-14T15:00:00Z");
    await expect
      .poll(() => address(page))
      .toEqual({ from: "2026-11-14T14:10:00.000Z", to: "2026-11-14T15:00:00.000Z" });
    // The day on which the clocks went back.
    await type("2026-10-25");
    await expect
      .poll(() => address(page))
      .toEqual({ from: "2026-10-24T22:00:00.000Z", to: "2026-10-25T23:00:00.000Z" });
    for (const length of ["3h", "4h", "5h"]) await type(length);
    await expect.poll(() => address(page)).toEqual({ range: "5h" });
    await openPicker(page);
    const lately = page.getByRole("heading", { name: "Lately" }).locator("..").getByRole("button");
    expect(await lately.allInnerTexts()).toEqual([
      "Last 5 hours",
      "Last 4 hours",
      "Last 3 hours",
      "Sun 25 Oct 00:00 for 1 d 1 h",
      "Sat 14 Nov 15:10 for 50 min",
    ]);
    await page.getByLabel("Type a time").fill("soon");
    await page.keyboard.press("Enter");
    await page.getByText(/^Try 3h/).waitFor();
    await close();
  });

  test("a key with one scope knows the zone, the hours and the name of the site", async () => {
    const { secret } = await server.addKey({ name: "reader", scopes: ["alerts:read"] });
    const { page, close } = await open("/settings?section=about", { key: secret });
    await page.getByText("Main Street 4").waitFor();
    await page.getByText("Europe/Helsinki").waitFor();
    await openPicker(page);
    await page.getByText("The site's zone (Helsinki time)").waitFor({ state: "attached" });
    await page.getByRole("button", { name: "Site hours yesterday" }).waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`${server.address}/settings?section=storage`);
    await page.getByText("Retention and disk need the scope events:read.").waitFor();
    await close();
  });
});

describeInBrowser("addresses of the console", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("what no screen knows is dropped, and said, on every screen", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/home");
    const paths = [
      "/home",
      "/alerts",
      "/axis",
      "/events",
      "/flows",
      "/rules",
      "/sources",
      "/settings",
      "/entity/address/10.0.0.7",
    ];
    for (const path of paths) {
      await page.goto(`${server.address}${path}?moon=full&range=3h`);
      await page.getByText("Not understood in the address, and left out: moon").waitFor();
      await expect.poll(() => new URL(page.url()).search, { message: path }).toBe("?range=3h");
    }
    await page.goto(`${server.address}/events?range=7+parsecs`);
    await page.getByText("Not understood in the address, and left out: range").waitFor();
    await page.goto(`${server.address}/events?from=2026-11-14&to=2026-11-13`);
    await page.getByText("Not understood in the address, and left out: from, to").waitFor();
    expect(faults).toEqual([]);
    await close();
  });
});
