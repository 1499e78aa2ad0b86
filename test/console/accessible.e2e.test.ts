import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { accessibilityFaults } from "./axe.ts";
import {
  describeInBrowser,
  everyLookFaults,
  launchBrowser,
  openConsole,
  settled,
  type ConsolePage,
} from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";
import { goTo, preparePlaces } from "./places.ts";
import { escape, STATES, type Places } from "./states.ts";

/** Everything around a screen is the same on all of them. */
const WHOLE_PAGES = new Set(["home", "a page that is not there"]);

describeInBrowser("every state of the console is accessible, in both themes and widths", () => {
  let server: TestServer;
  let browser: Browser;
  let opened: ConsolePage;
  let places: Places;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer({ settings: { rateLimits: false } }), launchBrowser()]);
    places = await preparePlaces(server);
    opened = await openConsole(browser, server, "/home");
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test.each(STATES)("$name", async (state) => {
    const { page, faults } = opened;
    await goTo(page, state, places);
    await state.reach?.(page);
    await settled(page);
    const found = await everyLookFaults(page, { isShellKnown: !WHOLE_PAGES.has(state.name) });
    await (state.leave ?? escape)(page);
    expect(found.join("\n\n")).toBe("");
    expect(faults).toEqual([]);
  });

  test("targets that are too small and too close are found", async () => {
    const { page } = opened;
    await page.evaluate(() => {
      const corner = document.createElement("div");
      corner.id = "small-targets";
      for (const name of ["one", "two"]) {
        const target = document.createElement("button");
        target.textContent = name;
        target.style.cssText = "display: inline-block; width: 12px; height: 12px; font-size: 4px; overflow: hidden";
        corner.append(target);
      }
      document.querySelector("main")!.prepend(corner);
    });
    const found = await accessibilityFaults(page, { within: "#small-targets" });
    await page.evaluate(() => document.querySelector("#small-targets")!.remove());
    expect(found.join("\n")).toContain("target-size");
  });
});
