import type { Browser, CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled } from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";
import { coverOf, lookFaults, menuFaults, noteFocus, returnFaults, tabFaults } from "./focus.ts";
import { goTo, preparePlaces } from "./places.ts";
import { escape, STATES, type Places } from "./states.ts";

describeInBrowser("the focus: every control is reached by Tab, is seen, and gives the focus back", () => {
  let server: TestServer;
  let browser: Browser;
  let page: Page;
  let keyboard: CDPSession;
  let places: Places;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer({ settings: { rateLimits: false } }), launchBrowser()]);
    places = await preparePlaces(server);
    ({ page } = await openConsole(browser, server, "/home"));
    keyboard = await page.context().newCDPSession(page);
    await noteFocus(page);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test.each(STATES)("$name", async (state) => {
    const reach = async () => {
      await goTo(page, state, places);
      await state.reach?.(page);
      await settled(page);
      return coverOf(page);
    };
    let cover = await reach();
    const faults: string[] = [];
    if (cover !== "page") {
      faults.push(...(await returnFaults(page)));
      cover = await reach();
    }
    if (cover === "menu") {
      faults.push(...(await menuFaults(page)));
    } else {
      faults.push(...(await lookFaults(page, cover)));
      // Last, because it leaves a popover.
      faults.push(...(await tabFaults(page, keyboard, cover)));
    }
    await (state.leave ?? escape)(page);
    expect(faults.join("\n")).toBe("");
  });
});
