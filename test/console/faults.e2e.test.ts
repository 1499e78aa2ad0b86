import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import {
  describeInBrowser,
  everyLookFaults,
  launchBrowser,
  openConsole,
  settled,
  type ConsolePage,
} from "./browser.ts";

// What each screen says when there is nothing to show, or when it cannot be had.

interface Screen {
  readonly path: string;
  /** What an empty store is told in. */
  readonly empty: RegExp;
  /** The scope that it asks for. */
  readonly scope: string;
}

const SCREENS: readonly Screen[] = [
  { path: "/home", empty: /Every alert has been looked at/, scope: "alerts:read" },
  { path: "/alerts", empty: /No alerts yet[\s\S]*curl .*\/v1\/events/, scope: "alerts:read" },
  { path: "/axis", empty: /Nothing happened here/, scope: "events:read" },
  { path: "/events", empty: /No events yet[\s\S]*curl .*\/v1\/events/, scope: "events:read" },
  { path: "/flows", empty: /No traffic in this time/, scope: "events:read" },
  { path: "/rules?search=nothing+at+all", empty: /No rule matches|Nothing matches/, scope: "rules:read" },
  { path: "/rules?tab=lists", empty: /No watch lists yet/, scope: "rules:read" },
  { path: "/sources", empty: /Nothing sends to this service yet/, scope: "events:read" },
  { path: "/entity/user/eva", empty: /No event names it in this time/, scope: "events:read" },
  { path: "/settings?section=keys", empty: /Its secret is shown once/, scope: "keys:manage" },
];

const REFUSAL = { error: { code: "unavailable", message: "the store is overloaded", details: [] }, meta: {} };
/** Everything but who is signed in. */
const ASKED = /\/v1\/(?!session|stream)/;

describeInBrowser("what screens say when there is nothing, or nothing can be had", () => {
  let server: TestServer;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer({ settings: { rateLimits: false } }), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const words = (page: Page) => page.locator("#screen").innerText();
  /** Every screen in a page of its own, at once: they wait before they ask again. */
  const onEveryScreen = async (look: (page: Page, screen: Screen) => Promise<void>) => {
    const context = opened.page.context();
    await Promise.all(
      SCREENS.map(async (screen) => {
        const page = await context.newPage();
        await page.goto(server.address + screen.path);
        await look(page, screen);
        await page.close();
      }),
    );
  };
  const expectEveryLook = async (page: Page, screen: Screen) =>
    expect((await everyLookFaults(page)).join("\n\n"), screen.path).toBe("");

  test("an empty store: what would be here, and what brings it here", async () => {
    opened = await openConsole(browser, server, "/settings?section=about");
    for (const screen of SCREENS) {
      await opened.page.goto(server.address + screen.path);
      await expect.poll(() => words(opened.page), { message: screen.path }).toMatch(screen.empty);
      await settled(opened.page);
      await expectEveryLook(opened.page, screen);
    }
    expect(opened.faults).toEqual([]);
    await opened.close();
  });

  test("a key without the scope: which scope it lacks", async () => {
    const key = await server.addKey({ scopes: ["collect:talk"] });
    opened = await openConsole(browser, server, "/settings?section=about", { key: key.secret });
    for (const screen of SCREENS) {
      await opened.page.goto(server.address + screen.path);
      await expect.poll(() => words(opened.page), { message: screen.path }).toContain(screen.scope);
      expect(await words(opened.page), screen.path).toMatch(/Your key may not (see this|manage keys)/);
      await expectEveryLook(opened.page, screen);
    }
    await opened.close();
  });

  test("a service that fails: why, the id of the request, and another try that works", async () => {
    opened = await openConsole(browser, server, "/settings?section=about");
    let isBroken = true;
    await opened.page
      .context()
      .route(ASKED, (route) =>
        isBroken
          ? route.fulfill({ status: 503, headers: { "X-Request-Id": "req_7" }, json: REFUSAL })
          : route.fallback(),
      );
    let failed = 0;
    const allFailed = Promise.withResolvers<void>();
    await onEveryScreen(async (page, screen) => {
      await page.getByText("The store is overloaded.").first().waitFor({ timeout: 100_000 });
      expect(await words(page), screen.path).toContain("req_7");
      // What is not known is not said to be nothing.
      expect(await words(page), screen.path).not.toMatch(screen.empty);
      await expectEveryLook(page, screen);
      if (++failed === SCREENS.length) {
        isBroken = false;
        allFailed.resolve();
      }
      await allFailed.promise;
      const again = page.getByRole("button", { name: "Try again" }).first();
      await expect
        .poll(
          async () => {
            // Questions that are asked at intervals may have been answered by themselves.
            if (await again.isVisible()) await again.click();
            return page.getByText("The store is overloaded.").count();
          },
          { message: screen.path },
        )
        .toBeLessThan(6);
    });
    await opened.close();
  });

  test("out of reach: the mark says so, what was read stays, and a change is refused in words", async () => {
    opened = await openConsole(browser, server, "/rules");
    const { page } = opened;
    await page.getByRole("table", { name: "Rules" }).waitFor();
    await settled(page);
    await page.context().setOffline(true);
    await page.getByRole("banner").getByRole("status").filter({ hasText: "Offline" }).waitFor();
    await page.getByText("access.badge_after_hours").first().waitFor();
    const toggle = page.getByRole("switch", { name: "access.badge_after_hours" });
    await toggle.click();
    await page
      .getByText(/cannot be reached/)
      .first()
      .waitFor();
    expect(await toggle.getAttribute("aria-checked")).toBe("true");
    expect((await everyLookFaults(page)).join("\n\n")).toBe("");
    await opened.close();
  });

  test("a used-up limit: the banner counts down, and what was done is sent afterwards, once", async () => {
    opened = await openConsole(browser, server, "/rules?tab=lists");
    const { page } = opened;
    await page.getByText("No watch lists yet").waitFor();
    let refused = 0;
    await page.route("**/v1/lists", (route) => {
      if (route.request().method() !== "POST" || refused++ > 0) return route.fallback();
      const body = { error: { code: "rate_limited", message: "too many requests", details: [] }, meta: {} };
      const headers = { "Retry-After": "8", "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0" };
      return route.fulfill({ status: 429, headers, json: body });
    });
    await page.getByRole("button", { name: "New list" }).click();
    await page.getByLabel("Name", { exact: true }).fill("kept");
    await page.getByRole("button", { name: "Create the list" }).click();
    await page
      .getByText(/Your key's limit of 100 requests is used up\. Going on in \d s; nothing that you did is lost/)
      .waitFor();
    expect((await everyLookFaults(page)).join("\n\n")).toBe("");
    await page.getByText("Nothing is on this list yet").waitFor({ timeout: 60_000 });
    await page.getByText(/is used up/).waitFor({ state: "detached" });
    expect(refused).toBe(2);
    expect((await server.call("GET", "/v1/lists")).body.data.map(({ name }: { name: string }) => name)).toEqual([
      "kept",
    ]);
    await server.call("DELETE", "/v1/lists/kept");
    await opened.close();
  });

  test("a session that ended: the sign-in covers the page, and is accessible", async () => {
    const key = await server.addKey({ name: "shift" });
    opened = await openConsole(browser, server, "/rules", { key: key.secret });
    const { page } = opened;
    await page.getByRole("table", { name: "Rules" }).waitFor();
    await server.call("DELETE", `/v1/keys/${key.key.id}`);
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByText("Your session has ended.").waitFor();
    expect((await everyLookFaults(page)).join("\n\n")).toBe("");
    // Nothing under it can be reached.
    for (let turn = 0; turn < 6; turn++) {
      await page.keyboard.press("Tab");
      expect(await page.evaluate(() => document.activeElement?.closest("[inert]"))).toBeNull();
    }
    await opened.close();
  });
});
