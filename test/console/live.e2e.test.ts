import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled, WITH_MOTION } from "./browser.ts";

const RULE = {
  name: "test.door",
  severity: "high",
  description: "A door was forced.\n\nLook at the camera.",
  title: "Door {{raw.door}} was forced",
  conditions: [{ field: "type", equals: "door_forced" }],
  dedup: { period: "1h", by: "raw.door" },
  actions: [{ alert: { channels: [] } }],
};

describeInBrowser("the console and a service that changes", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const force = async (on: TestServer, door: string) => {
    const body = { type: "door_forced", source: "custom", severity: "high", data: { door } };
    expect((await on.call("POST", "/v1/events", { body })).status).toBe(201);
  };
  const live = (page: Page, word: string) =>
    page
      .getByRole("banner")
      .getByRole("status")
      .filter({ hasText: new RegExp(`^${word}$`) });

  test("the stream goes on after the service was restarted, and what came in between can be shown", async () => {
    let own = await openTestServer();
    await own.call("POST", "/v1/rules", { body: RULE });
    await force(own, "North");
    const { page, close } = await openConsole(browser, own, "/alerts?group=none", { context: WITH_MOTION });
    await page.getByRole("row", { name: /North/ }).waitFor();
    await live(page, "Live").waitFor();
    own = await own.restart(() => live(page, "Offline").waitFor(), { settings: { port: own.port } });
    await force(own, "Roof");
    await live(page, "Live").waitFor({ timeout: 60_000 });
    // No message had come before, so the browser could not say from where to go on: the page says that it may have missed some.
    await page.getByRole("button", { name: "Alerts may have been missed: show them" }).click();
    await page.getByRole("row", { name: /Roof/ }).waitFor();
    await close();
    await own.close();
  });

  test("a used-up limit is said in words, and what was asked goes on by itself", async () => {
    const { page, close } = await openConsole(browser, server, "/settings?section=usage");
    await settled(page);
    let refused = 0;
    await page.route("**/v1/keys", (route) => {
      if (refused++ > 0) return route.fallback();
      const body = { error: { code: "rate_limited", message: "too many requests", details: [] }, meta: {} };
      return route.fulfill({ status: 429, headers: { "Retry-After": "2" }, json: body });
    });
    await page.getByRole("button", { name: "Keys" }).click();
    await page.getByText(/Your key's limit.* is used up\. Going on in \d s/).waitFor();
    await page.getByRole("button", { name: "New key" }).waitFor();
    await page.getByRole("cell", { name: /test/ }).first().waitFor();
    expect(refused).toBe(2);
    await close();
  });

  test("an error of the service has its id and can be tried again", async () => {
    const { page, close } = await openConsole(browser, server, "/settings?section=usage");
    let isBroken = true;
    await page.route("**/v1/keys", (route) => {
      if (!isBroken) return route.fallback();
      const body = { error: { code: "unavailable", message: "the store is overloaded", details: [] }, meta: {} };
      return route.fulfill({ status: 503, headers: { "X-Request-Id": "req_7" }, json: body });
    });
    await page.getByRole("button", { name: "Keys" }).click();
    await page.getByText("The store is overloaded.").waitFor({ timeout: 60_000 });
    expect(await page.getByText("req_7").count()).toBe(1);
    isBroken = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("cell", { name: /test/ }).first().waitFor();
    await close();
  });
});
