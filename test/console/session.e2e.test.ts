import { request as httpRequest } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, expectAccessible, launchBrowser, openConsole, openPage, WIDTHS } from "./browser.ts";

describeInBrowser("signing in to the console", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("a wrong key is refused in words, a right one opens the page that was asked for", async () => {
    const { page, faults, close } = await openPage(browser);
    await page.goto(`${server.address}/settings?section=usage`);
    await page.getByLabel("API key").fill("tsn_key_0_wrong");
    await page.keyboard.press("Enter");
    await page.getByText("This key does not exist, has expired or was revoked.").waitFor();
    await page.getByLabel("API key").fill(server.key.secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/settings");
    // Nothing that a script could read holds the key.
    const seen = await page.evaluate(() => `${document.cookie} ${JSON.stringify(localStorage)} ${location.href}`);
    expect(seen).not.toContain("tsn_");
    expect(faults).toEqual([]);
    await close();
  });

  test("signing out ends the session for every tab", async () => {
    const { page, close } = await openConsole(browser, server, "/settings");
    const other = await page.context().newPage();
    await other.goto(`${server.address}/settings?section=usage`);
    await other.getByRole("heading", { name: "Usage" }).waitFor();
    await page.getByRole("button", { name: /signed in with the key/ }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    await other.reload();
    await other.getByLabel("API key").waitFor();
    await close();
  });

  test("a revoked key covers the page with the sign-in, and signing in again goes on where it was", async () => {
    const made = await server.addKey({ name: "shift" });
    const { page, close } = await openConsole(browser, server, "/settings?section=appearance", { key: made.secret });
    await page.getByLabel("Rows").selectOption("compact");
    await server.call("DELETE", `/v1/keys/${made.key.id}`);
    await page.getByRole("button", { name: "Usage" }).click();
    await page.getByText("Your session has ended.").waitFor();
    await page.getByLabel("API key").fill(server.key.secret);
    await page.keyboard.press("Enter");
    await page.getByText(/has the plan/).waitFor();
    expect(await page.evaluate(() => localStorage.getItem("density"))).toBe("compact");
    await close();
  });

  test("what a key may not see is listed with the missing scope", async () => {
    const made = await server.addKey({ name: "reader", scopes: ["events:read"] });
    const { page, faults, close } = await openConsole(browser, server, "/settings", { key: made.secret });
    const rail = page.getByRole("navigation", { name: "Screens" });
    expect(await rail.getByRole("link", { name: "Alerts" }).count()).toBe(0);
    expect(await rail.getByTitle("Your key lacks the scope alerts:read.").first().isVisible()).toBe(true);
    await page.getByText("Your key may not manage keys").waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  test("a page of another origin cannot act with the cookie", async () => {
    const { page, close } = await openConsole(browser, server, "/settings");
    const cookies = await page.context().cookies();
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
    const post = (headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const sent = httpRequest(
          `${server.address}/v1/views`,
          { method: "POST", headers: { cookie, "content-type": "application/json", ...headers } },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode!);
          },
        );
        sent.on("error", reject);
        sent.end(JSON.stringify({ screen: "alerts", name: "mine", search: "status=open" }));
      });
    expect(await post({ "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await post({ origin: "https://elsewhere.example" })).toBe(403);
    expect(await post({})).toBe(403);
    expect(await post({ "sec-fetch-site": "same-origin" })).toBe(201);
    expect(cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === "Strict")).toBe(true);
    await close();
  });

  test("the sign-in has no accessibility fault, in both themes and widths", async () => {
    for (const width of Object.values(WIDTHS)) {
      const { page, close } = await openPage(browser, { width });
      await page.goto(server.address);
      await page.getByLabel("API key").waitFor();
      await expectAccessible(page);
      await close();
    }
  });
});
