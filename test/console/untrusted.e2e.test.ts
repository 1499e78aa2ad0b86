import type { Browser, Page } from "playwright-core";
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
/** Turns the direction of writing, and does not turn it back. */
const TURNED = "\u202Egnp.reverse";
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

/** What a page may hold of them: text. */
const elementsMade = (page: Page) =>
  page.evaluate(() => ({
    elements: document.querySelectorAll(
      "[data-payload], img[src*=elsewhere], a[href^='javascript:' i], [onerror], [onload]",
    ).length,
    hit: (window as unknown as { hit?: number }).hit,
    title: document.title.length < 200,
  }));
const NOTHING = { elements: 0, hit: undefined, title: true };

describeInBrowser("what strangers write", () => {
  let server: TestServer;
  let browser: Browser;
  let alertId: string;
  let ruleId: string;
  let named: string;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer({ settings: { rateLimits: false } }), launchBrowser()]);
    for (const payload of PAYLOADS.slice(0, 6)) {
      named = (await server.addKey({ name: payload.slice(0, 90) })).secret;
    }
    const rule = await server.call("POST", "/v1/rules", {
      body: {
        name: "test.untrusted",
        severity: "critical",
        description: `${PAYLOADS.join(" ")}\n\n${PAYLOADS[1]}`,
        title: `${PAYLOADS[0]} {{raw.user}}`,
        conditions: [
          { field: "type", in: TYPES },
          { field: `raw.${PAYLOADS[0]}`, not_equals: PAYLOADS[1] },
        ],
        dedup: { period: "1h", by: "type" },
        tags: ["test"],
        references: PAYLOADS.slice(0, 4),
        actions: [{ alert: { channels: [] } }],
      },
    });
    expect(rule.status, rule.text).toBe(201);
    ruleId = rule.body.data.id;
    await server.call("POST", `/v1/rules/${ruleId}/exceptions`, {
      body: { conditions: [{ field: "raw.user", equals: PAYLOADS[1] }], reason: PAYLOADS[0] },
    });
    const drafts = TYPES.flatMap((type) =>
      PAYLOADS.map((payload) => ({ type, source: "custom", severity: "high", data: rawOf(payload) })),
    );
    drafts.push({ type: "made_up", source: "custom", severity: "high", data: { message: LONG, user: LONG } as never });
    drafts.push({
      type: "access_granted",
      source: "custom",
      severity: "low",
      data: { user: TURNED, door: "Dock" } as never,
    });
    const sent = await server.call("POST", "/v1/events/batch", { body: drafts });
    expect(sent.body.data.rejected).toEqual([]);
    const newest = async () => (await server.call("GET", "/v1/alerts?limit=1")).body.data[0]?.id as string | undefined;
    alertId = await vi.waitUntil(newest, { timeout: 100_000 });
    await server.call("POST", "/v1/lists", { body: { name: "nasty", description: PAYLOADS[0] } });
    await server.call("POST", "/v1/lists/nasty/entries", { body: { value: "192.0.2.1", note: PAYLOADS[1] } });
    for (const payload of PAYLOADS) {
      await server.call("POST", `/v1/alerts/${alertId}/comments`, { body: { body: payload } });
      // What the service refuses, of control characters for one, cannot reach a screen.
      await server.call("PATCH", `/v1/alerts/${alertId}/tags`, { body: { add: [payload] } });
      await server.call("POST", "/v1/views", {
        body: { screen: "alerts", name: payload.slice(0, 90), search: "status=open", shared: true },
      });
      await server.call("POST", "/v1/collect/syslog", {
        body: `<134>1 2026-01-01T00:00:00Z ${payload.replaceAll(" ", "")} sshd - - - ${payload}`,
        headers: { "content-type": "text/plain", "user-agent": payload.replaceAll(/[^\x20-\x7e]/g, "?") },
      });
      await server.call("POST", "/v1/collect/talk", {
        body: { id: payload, from: payload, to: payload, name: payload },
      });
    }
    await server.call("POST", `/v1/alerts/${alertId}/comments`, {
      body: { body: `${PAYLOADS[5]} ${LONG}`.slice(0, 9000) },
    });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("is shown as text on every screen", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/home", { key: named });
    const [user] = PAYLOADS.map((payload) => encodeURIComponent(payload));
    const paths = [
      "/home",
      `/alerts?view=all&alert=${alertId}`,
      `/alerts?view=all&search=${user}&rule_name=${user}&tag=${user}`,
      `/axis?alert=${alertId}`,
      "/axis?range=1h&show=everything",
      "/events?range=1h&columns=raw.user,raw.message",
      `/events?range=1h&search=${user}`,
      `/events?range=1h&filter=raw.user=${user}`,
      `/flows?host=${user}&${user}=1`,
      ...PAYLOADS.map((payload) => `/entity/user/${encodeURIComponent(payload)}`),
      `/entity/door/${encodeURIComponent(LONG.slice(0, 300))}`,
      "/rules?search=untrusted",
      `/rules?rule=${ruleId}`,
      `/rules?edit=${ruleId}`,
      "/rules?tab=lists&list=nasty",
      `/rules?rule=${user}`,
      "/sources",
      "/settings?section=keys",
      "/settings?section=usage",
    ];
    for (const path of paths) {
      await page.goto(server.address + path);
      await page.getByRole("main").first().waitFor();
      await settled(page);
      expect(await elementsMade(page), path).toEqual(NOTHING);
      expect(faults, path).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path).toBe(true);
    }
    await close();
  });

  test("is shown as text in what opens over a screen, and each payload can be read", async () => {
    const { page, faults, close } = await openConsole(browser, server, `/alerts?view=all&alert=${alertId}`, {
      key: named,
    });
    const panel = page.getByRole("complementary", { name: "The chosen alert" });
    await panel.getByText(PAYLOADS[3]!).first().waitFor();
    for (const key of ["r", "e", "i"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      expect(await elementsMade(page), key).toEqual(NOTHING);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(PAYLOADS[0]!);
    await page.getByRole("option").first().waitFor();
    expect(await elementsMade(page), "palette").toEqual(NOTHING);
    await page.keyboard.press("Escape");
    await page.goto(`${server.address}/events?range=1h&type=made_up&columns=raw.user`);
    for (const payload of PAYLOADS.slice(0, 6)) {
      await page.getByRole("table", { name: "Events" }).getByText(payload, { exact: false }).first().waitFor();
    }
    // A name that turns the direction of writing turns none of the words around it.
    await page.goto(`${server.address}/events?range=1h&type=access_granted`);
    const turned = page
      .getByRole("table", { name: "Events" })
      .getByRole("link", { name: /gnp\.reverse/ })
      .first();
    await turned.waitFor();
    const isForwards = await turned.evaluate((link) => {
      const after = link.nextSibling as Text;
      const at = (offset: number) => {
        const range = document.createRange();
        range.setStart(after, offset);
        range.setEnd(after, offset + 1);
        return range.getBoundingClientRect().left;
      };
      return at(1) < at(after.length - 2);
    });
    expect(isForwards).toBe(true);
    await page.goto(`${server.address}/sources`);
    const rows = page.getByRole("main").locator("button[aria-expanded]");
    await rows.first().waitFor();
    for (const row of await rows.all()) {
      await row.click();
      await page.getByText("Last line").waitFor();
      expect(await elementsMade(page), await row.innerText()).toEqual(NOTHING);
      await row.click();
    }
    expect(faults).toEqual([]);
    await close();
  });

  test("is shown as text where an answer or its header brings it", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/settings?section=about");
    await page.route("**/v1/keys", (route) =>
      route.fulfill({
        status: 400,
        headers: { "X-Request-Id": PAYLOADS[0]! },
        json: {
          error: { code: PAYLOADS[1], message: PAYLOADS[2], details: [{ field: PAYLOADS[0], message: PAYLOADS[1] }] },
        },
      }),
    );
    await page.getByRole("button", { name: "Keys" }).click();
    await page.getByRole("alert").getByText(PAYLOADS[0]!).first().waitFor();
    await page.getByRole("alert").getByText(PAYLOADS[1]!).waitFor();
    expect(await elementsMade(page)).toEqual(NOTHING);
    expect(faults).toEqual([]);
    await close();
  });
});
