import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled } from "./browser.ts";

// What strangers write reaches every screen. It must be shown as text: no element, no script, no dialog, no violation.

const PAYLOADS = [
  `<img src=x onerror="window.hit=1" data-payload>`,
  `<script data-payload>window.hit=1</script>`,
  `"><svg data-payload onload="window.hit=1">`,
  `javascript:window.hit=1//`,
  `{{constructor.constructor('window.hit=1')()}}`,
  `[link](javascript:window.hit=1) ![image](//elsewhere.example/x.png) <b data-payload>bold</b>`,
  `\u202Etxt.exe\u2066 \u0007\u001b[31m`,
];
const LONG = "A".repeat(64 * 1024);

const rawOf = (payload: string) => ({
  ...Object.fromEntries(
    "user door camera src_ip dst_ip host device message query signature reason from to setting src_mac line"
      .split(" ")
      .map((field) => [field, payload]),
  ),
  [payload]: payload,
  nested: { [payload]: [payload] },
});

const TYPES =
  "access_granted door_forced person ids_alert login_failure call_started dns_query config_changed made_up".split(" ");

describeInBrowser("what strangers write", () => {
  let server: TestServer;
  let browser: Browser;
  let alertId: string;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
    await server.addKey({ name: PAYLOADS[0]! });
    await server.call("POST", "/v1/rules", {
      body: {
        name: "test.untrusted",
        severity: "critical",
        description: `${PAYLOADS.join(" ")}\n\n${PAYLOADS[1]}`,
        title: `${PAYLOADS[0]} {{raw.user}}`,
        conditions: [{ field: "type", in: TYPES }],
        dedup: { period: "1h", by: "type" },
        tags: ["test"],
        actions: [{ alert: { channels: [] } }],
      },
    });
    const drafts = TYPES.flatMap((type) =>
      PAYLOADS.map((payload) => ({ type, source: "custom", severity: "high", data: rawOf(payload) })),
    );
    drafts.push({ type: "made_up", source: "custom", severity: "high", data: { message: LONG, user: LONG } as never });
    const sent = await server.call("POST", "/v1/events/batch", { body: drafts });
    expect(sent.body.data.rejected).toEqual([]);
    const newest = async () => (await server.call("GET", "/v1/alerts?limit=1")).body.data[0]?.id as string | undefined;
    alertId = await vi.waitUntil(newest, { timeout: 100_000 });
    for (const payload of PAYLOADS) {
      await server.call("POST", `/v1/alerts/${alertId}/comments`, { body: { body: payload } });
      await server.call("POST", "/v1/views", {
        body: { screen: "alerts", name: payload.slice(0, 90), search: "status=open" },
      });
    }
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("is shown as text on every screen", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/home");
    const user = encodeURIComponent(PAYLOADS[0]!);
    const paths = [
      "/home",
      `/alerts?view=all&alert=${alertId}`,
      `/axis?alert=${alertId}`,
      "/axis?range=1h&show=everything",
      "/events?range=1h",
      `/events?range=1h&search=${user}`,
      `/entity/user/${user}`,
      "/rules?search=untrusted",
      "/settings?section=keys",
    ];
    for (const path of paths) {
      await page.goto(server.address + path);
      await page.getByRole("main").first().waitFor();
      await settled(page);
      const made = await page.evaluate(() => ({
        elements: document.querySelectorAll("[data-payload], img[src*=elsewhere], a[href^='javascript:' i]").length,
        hit: (window as unknown as { hit?: number }).hit,
        title: document.title.length < 200,
      }));
      expect(made, path).toEqual({ elements: 0, hit: undefined, title: true });
      expect(faults, path).toEqual([]);
    }
    await page.goto(`${server.address}/alerts?view=all&alert=${alertId}`);
    await page.getByText(PAYLOADS[3]!).first().waitFor();
    await close();
  });
});
