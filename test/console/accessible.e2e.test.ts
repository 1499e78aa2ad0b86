import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { describeInBrowser, everyLookFaults, launchBrowser, openConsole, settled } from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";
import { escape, STATES, type Places, type State } from "./states.ts";

describeInBrowser("every state of the console is accessible, in both themes and widths", () => {
  let server: TestServer;
  let browser: Browser;
  let page: Page;
  let places: Places;
  const faults: string[] = [];
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer({ settings: { rateLimits: false } }), launchBrowser()]);
    places = await preparePlaces(server);
    const opened = await openConsole(browser, server, "/home");
    page = opened.page;
    faults.push(...opened.faults);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** As a link in the page would: nothing is loaded again. */
  const go = async ({ path }: State) => {
    await page.evaluate((to) => history.pushState({}, "", to), path(places));
    await page
      .getByRole("main")
      .or(page.getByText("There is no such page"))
      .or(page.getByRole("dialog"))
      .first()
      .waitFor();
    await settled(page);
  };

  test.each(STATES)("$name", async (state) => {
    await go(state);
    await state.reach?.(page);
    await settled(page);
    const found = await everyLookFaults(page);
    await (state.leave ?? escape)(page);
    expect(found.join("\n\n")).toBe("");
    expect(faults).toEqual([]);
  });
});

async function preparePlaces(server: TestServer): Promise<Places> {
  const alert = (await server.call("GET", "/v1/alerts?rule_name=site.intrusion_across_domains&limit=1")).body.data[0];
  await server.call("POST", `/v1/alerts/${alert.id}/reopen`, { body: {} });
  const event = (await server.call("GET", "/v1/events?type=access_granted&limit=1")).body.data[0];
  const made = await server.call("POST", "/v1/rules", {
    body: {
      name: "site.own",
      description: "Somebody came in\n\nLook at the camera.",
      severity: "low",
      conditions: [{ field: "type", equals: "access_granted" }],
      actions: [{ alert: { channels: [] } }],
    },
  });
  const ownRule = made.body.data.id as string;
  await server.call("POST", `/v1/rules/${ownRule}/exceptions`, {
    body: { conditions: [{ field: "raw.user", equals: "ada" }], reason: "our own" },
  });
  await server.call("POST", "/v1/lists", { body: { name: "blocked", description: "Neighbours" } });
  await server.call("POST", "/v1/lists/blocked/entries", { body: { value: "192.0.2.17", note: "loud" } });
  const call = { id: "c1", from: "101", to: "102", direction: "out", started_at: new Date().toISOString() };
  await server.call("POST", "/v1/collect/talk", { body: call });
  return { alert: alert.id, event: event.id, rule: alert.rule_name, ownRule, list: "blocked" };
}
