import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled, type ConsolePage } from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";

const searchOf = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);

describeInBrowser("the screens of the console", () => {
  let server: TestServer;
  let browser: Browser;
  let opened: ConsolePage | undefined;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const open = async (path: string) => {
    await opened?.close();
    opened = await openConsole(browser, server, path);
    return opened;
  };

  test("home shows what is open, and each number leads to the list behind it", async () => {
    const { page, faults } = await open("/");
    const { body } = await server.call("POST", "/v1/alerts/search", {
      body: { query: { bool: { must_not: [{ field: "status", equals: "resolved" }] } }, limit: 0 },
    });
    const total = page.getByRole("link", { name: new RegExp(`^${body.data.total}\\s*alerts$`) });
    await total.waitFor();
    await page.getByRole("heading", { name: "Noisiest rules" }).waitFor();
    await page
      .getByRole("link", { name: /critical$/ })
      .first()
      .click();
    await page.waitForURL("**/alerts**");
    expect(searchOf(page)).toMatchObject({ severity: "critical" });
    expect(faults).toEqual([]);
  });

  test("a range that is dragged in a chart is the range of every screen", async () => {
    const { page } = await open("/home?range=7d");
    const chart = page.getByRole("img", { name: /alerts over time/ });
    await chart.waitFor();
    const box = (await chart.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.4, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=/);
    const { from, to } = searchOf(page);
    expect(Date.parse(to!) - Date.parse(from!)).toBeCloseTo(0.2 * 7 * 86_400_000, -7);
    await page.getByRole("link", { name: "Flows", exact: true }).first().click();
    await page.waitForURL("**/flows**");
    expect(searchOf(page)).toMatchObject({ from, to });
  });

  test("flows are filtered by typing, and by choosing a talker", async () => {
    const { page, faults } = await open("/flows");
    await page.keyboard.press("/");
    await page.keyboard.type("port 443");
    await page.keyboard.press("Enter");
    await page.waitForURL(/port=443/);
    await settled(page);
    const first = page.getByRole("table").first().getByRole("row").nth(1);
    const address = await first.getByRole("link").innerText();
    await first.getByRole("button", { name: `Show only ${address}` }).click();
    await page.waitForURL(/src=/);
    expect(searchOf(page)).toMatchObject({ port: "443", src: address });
    await page.getByLabel("Filter", { exact: true }).fill("nonsense");
    await page.keyboard.press("Enter");
    await page.getByText("Try 10.20.3.240").waitFor();
    expect(faults).toEqual([]);
  });

  test("a source is connected: what to type, waiting, then the first line as it was understood", async () => {
    const { page, faults } = await open("/sources");
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("button", { name: /UniFi Talk/ }).click();
    await page.getByText("Waiting for the first line…").waitFor();
    const key = await server.addKey({ name: "talk", scopes: ["collect:talk"] });
    const call = { id: "c1", from: "101", to: "102", direction: "out", started_at: new Date().toISOString() };
    const sent = await server.call("POST", "/v1/collect/talk", { key: key.secret, body: call });
    expect([200, 202]).toContain(sent.status);
    await page.getByText(/1 line from Webhook talk\. Understood as/).waitFor();
    expect(faults).toEqual([]);
  });

  test("a key is made, shown once, used and revoked", async () => {
    const { page, faults } = await open("/settings?section=keys");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name").fill("night shift");
    await page.getByRole("button", { name: "Create the key" }).click();
    // The form names scopes in the same type until the answer comes.
    await page.getByRole("button", { name: "I have copied it" }).waitFor();
    const secret = await page.getByRole("dialog").locator("code").innerText();
    expect((await server.call("GET", "/v1/alerts", { key: secret })).status).toBe(200);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
    await page.getByRole("button", { name: "What to do with the key night shift" }).click();
    await page.getByRole("menuitem", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("Revoked the key night shift.").waitFor();
    expect((await server.call("GET", "/v1/alerts", { key: secret })).status).toBe(401);
    expect(faults).toEqual([]);
  });

  test("the palette goes to an entity, and keys go to screens", async () => {
    const { page, faults } = await open("/settings");
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.waitForURL("**/flows**");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").waitFor();
    await page.keyboard.type("Loading dock");
    await page.getByRole("option", { name: /Loading dock door/ }).click();
    await page.waitForURL("**/entity/door/**");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "All keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "All keys" }).waitFor({ state: "detached" });
    expect(faults).toEqual([]);
  });

  test("what the address does not mean is left out, and said", async () => {
    const { page } = await open("/flows?prot=tcp&port=443");
    await page.getByText("Not understood in the address, and left out: prot").waitFor();
  });
});
