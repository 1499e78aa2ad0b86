import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { alertServer, faultsOf, fieldsOf } from "../../test/alert-server.ts";
import { flowRowsOf, type FlowRow } from "../model/flow-rows.ts";
import { shiftReportSchema } from "../reports/shift-report-schema.ts";

const { clock, current, raise, post } = alertServer();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.UTC(2026, 10, 15, 6);
const END = START + 12 * HOUR;
const at = (ms: number) => new Date(ms).toISOString();
const PATH = "/v1/reports/shift";
const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const NONE = { critical: 0, high: 0, medium: 0, low: 0, info: 0 };

const report = async (query = "") => {
  const answer = await current.server.call("GET", `${PATH}?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data;
};

const flow = (more: Partial<FlowRow>): FlowRow => ({
  windowStartMs: START + HOUR,
  src: "10.0.0.1",
  dst: "192.0.2.80",
  srcPort: 50_000,
  dstPort: 443,
  protocol: 6,
  tcpFlags: 27,
  bytes: 1000n,
  packets: 10n,
  firstSeenMs: START + HOUR,
  lastSeenMs: START + HOUR + 5,
  exporter: "192.0.2.1",
  version: 9,
  ...more,
});

let ids: Record<"before" | "carried" | "seen" | "falsePositive" | "waiting", string>;

beforeAll(async () => {
  const { server } = current;
  const eva = (await server.addKey({ name: "Eva <b>" })).secret;
  clock.ms = START - 3 * HOUR;
  const before = await raise({ name: "doors.forced", severity: "low" });
  const carried = await raise({ name: "doors.forced", severity: "critical", title: "Door <i>A</i> was forced" });
  clock.ms = START - 2 * HOUR;
  await post(`${before}/resolve`, { resolution: "benign" });
  clock.ms = START + HOUR;
  const seen = await raise({ name: "doors.held" });
  const falsePositive = await raise({ name: "doors.forced", severity: "low" });
  clock.ms = START + 2 * HOUR;
  await post(`${seen}/acknowledge`, { assignee: "anna@example.com" }, eva);
  await post(
    `${falsePositive}/resolve`,
    { resolution: "false_positive", comment: "A draught\n  moved the door." },
    eva,
  );
  clock.ms = START + 3 * HOUR;
  await post(`${carried}/resolve`, {
    resolution: "true_positive",
    comment: `<script>alert(1)</script>${"x".repeat(400)}`,
  });
  const waiting = await raise({ name: "cameras.offline", severity: "medium" });
  ids = { before, carried, seen, falsePositive, waiting };
  await server.store.flows.append(
    flowRowsOf([
      flow({ bytes: 5000n }),
      flow({ src: "10.0.0.2", bytes: 700n }),
      flow({ windowStartMs: START - HOUR, bytes: 90n }),
      flow({ windowStartMs: END + HOUR }),
    ]),
    "report",
  );
  clock.ms = END;
});

describe("a shift report as data", () => {
  test("counts alerts by the time at which each thing happened, beside the period before", async () => {
    const found = await report(`from=${at(START)}&to=${at(END)}`);
    expect(() => shiftReportSchema.parse(found)).not.toThrow();
    expect(found).toMatchObject({
      from: at(START),
      to: at(END),
      previous_from: at(START - 12 * HOUR),
      timezone: "UTC",
    });
    expect(found.alerts).toEqual({
      created: { total: 3, previous: 2, by_severity: { ...NONE, high: 1, medium: 1, low: 1 } },
      acknowledged: { total: 1, previous: 0, by_severity: { ...NONE, high: 1 } },
      resolved: { total: 2, previous: 1, by_severity: { ...NONE, critical: 1, low: 1 } },
      resolutions: { true_positive: 1, false_positive: 1, benign: 0, duplicate: 0 },
      open: { total: 2, unacknowledged: 1, at_start: 1, by_severity: { ...NONE, high: 1, medium: 1 } },
      seconds_to_first_look: { value: (1 + 1 + 6) * 1200, previous: 3600 },
      seconds_to_resolve: { value: (1 + 6) * 1800, previous: 3600 },
    });
  });

  test("lists what was handled, by whom and with what comment, and what is open, oldest first", async () => {
    const { handled, open } = await report(`from=${at(START)}&to=${at(END)}`);
    expect(handled.total).toBe(3);
    const rows = handled.items.map((item: any) => [item.alert_id, item.action, item.by, item.resolution, item.at]);
    expect(rows).toEqual([
      [ids.carried, "resolved", "test", "true_positive", at(START + 3 * HOUR)],
      [ids.falsePositive, "resolved", "Eva <b>", "false_positive", at(START + 2 * HOUR)],
      [ids.seen, "acknowledged", "Eva <b>", null, at(START + 2 * HOUR)],
    ]);
    const [long, comment, none] = handled.items.map((item: any) => item.last_comment);
    expect(comment).toEqual({ author: "Eva <b>", at: at(START + 2 * HOUR), text: "A draught moved the door." });
    expect(long.text).toHaveLength(200);
    expect(none).toBeNull();
    expect(open.oldest_created_at).toBe(at(START + HOUR));
    expect(open.items.map((item: any) => [item.alert_id, item.assignee, item.status])).toEqual([
      [ids.seen, "anna@example.com", "acknowledged"],
      [ids.waiting, null, "open"],
    ]);
  });

  test("has the trend, the noisiest rules and the traffic of the range", async () => {
    const { trend, rules, traffic } = await report(`from=${at(START)}&to=${at(END)}`);
    expect(trend.interval_seconds).toBe(900);
    expect(trend.intervals).toHaveLength(48);
    expect(trend.intervals[4]).toEqual({ from: at(START + HOUR), by_severity: { ...NONE, high: 1, low: 1 } });
    expect(rules).toEqual({
      items: [
        { rule_name: "cameras.offline", alerts: 1, false_positive_share: null },
        { rule_name: "doors.forced", alerts: 1, false_positive_share: 0.333 },
        { rule_name: "doors.held", alerts: 1, false_positive_share: null },
      ],
      other_alerts: 0,
    });
    expect(traffic).toMatchObject({ bytes: 5700, flow_count: 2, previous_bytes: 90, interval_seconds: 900 });
    expect(traffic.talkers.map((talker: any) => [talker.address, talker.bytes, talker.flow_count])).toEqual([
      ["10.0.0.1", 5000, 1],
      ["10.0.0.2", 700, 1],
    ]);
    const busy = traffic.intervals.filter((interval: any) => interval.bytes + interval.previous_bytes > 0);
    expect(busy).toEqual([
      { from: at(START + HOUR), bytes: 5700, previous_bytes: 0 },
      { from: at(START + 11 * HOUR), bytes: 0, previous_bytes: 90 },
    ]);
  });

  test("tells which sources are in trouble and what was refused", async () => {
    const { server } = current;
    const collect = (name: string, body: unknown) => server.call("POST", `/v1/collect/${name}`, { body });
    expect((await collect("access", { event: "access.door.unlock" })).status).toBe(200);
    const refused = await collect("protect", 7);
    const { sources, losses } = await report();
    expect(sources.items.map(({ name, healthy }: any) => [name, healthy])).toEqual([
      ["protect", false],
      ["access", true],
    ]);
    expect(sources).toMatchObject({ total: 2, in_trouble: 1 });
    expect(sources.items[0]).toMatchObject({ kind: "webhook", last_seen: at(END) });
    expect(sources.items[0].summary, refused.text).toMatch(/^the last item was refused: ./);
    expect(losses.dropped).toEqual([{ what: expect.stringContaining("webhook items"), count: 1 }]);
    expect(losses.retention_paused).toBe(false);
    expect(losses.disk.free_bytes).toBeGreaterThan(0);
  });

  test("covers the last 12 hours by default, also with relative bounds", async () => {
    expect(await report()).toMatchObject({ from: at(END - 12 * HOUR), to: at(END) });
    expect(await report("to=now-1h")).toMatchObject({ from: at(END - 13 * HOUR), to: at(END - HOUR) });
    expect(await report("from=now-8h")).toMatchObject({ from: at(END - 8 * HOUR), to: at(END) });
  });

  test("of a range without anything has empty lists", async () => {
    const found = await report(`from=2025-01-01&to=2025-02-01`);
    expect(found.alerts.created).toEqual({ total: 0, previous: 0, by_severity: NONE });
    expect(found.alerts.seconds_to_resolve).toEqual({ value: null, previous: null });
    expect(found.handled).toEqual({ total: 0, items: [] });
    expect(found.traffic).toMatchObject({ bytes: 0, talkers: [] });
    expect(found.trend.intervals).toHaveLength(62);
  });
});

describe("a shift report as a page", () => {
  const page = (query = "", headers: Record<string, string> = BROWSER) =>
    current.server.call("GET", `${PATH}?${query}`, { headers });

  test("is what browsers get, and what format=html names", async () => {
    const isPage = async (query: string, accept?: string) => {
      const { headers } = await page(query, accept === undefined ? {} : { accept });
      expect(headers.vary).toContain("Accept");
      return headers["content-type"] === "text/html; charset=utf-8";
    };
    expect(await isPage("", BROWSER.accept)).toBe(true);
    expect(await isPage("format=html")).toBe(true);
    expect(await isPage("")).toBe(false);
    expect(await isPage("", "*/*")).toBe(false);
    expect(await isPage("format=json", BROWSER.accept)).toBe(false);
  });

  test("allows its own style sheet and nothing else", async () => {
    const { text, headers } = await page();
    const [, style] = /<style>([^]*?)<\/style>/.exec(text)!;
    const hash = createHash("sha256").update(style!).digest("base64");
    expect(headers["content-security-policy"]).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(headers["cache-control"]).toBe("no-store");
    expect(text).not.toMatch(/<script|<img|<link|<iframe|\sstyle=|\son[a-z]+=|@import|https?:/i);
  });

  test("shows texts from outside as text, and links each alert to the console", async () => {
    const { text } = await page(`from=${at(START)}&to=${at(END)}`);
    expect(text).toContain("Door &lt;i&gt;A&lt;/i&gt; was forced");
    expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;xx");
    expect(text).toContain("Eva &lt;b&gt;");
    for (const id of [ids.carried, ids.waiting]) expect(text).toContain(`href="/alerts?alert=${id}"`);
  });

  test("has the times in the zone of the request, which it names", async () => {
    const { text } = await page(`from=${at(START)}&to=${at(END)}&timezone=Asia/Kolkata`);
    expect(text).toContain("Sun 15 Nov 2026, 11:30 to 23:30</time> (Asia/Kolkata, UTC+5:30), 12 h");
    expect((await page()).text).toContain("06:00 to 18:00</time> (UTC), 12 h");
  });

  test("opens with the cookie of a session", async () => {
    const { server } = current;
    const { secret } = await server.addKey({ scopes: ["alerts:read", "events:read"] });
    const signedIn = await server.call("POST", "/v1/session", { key: null, body: { key: secret } });
    const cookie = signedIn.headers["set-cookie"]![0]!.split(";")[0]!;
    const answer = await server.call("GET", PATH, { key: null, headers: { ...BROWSER, cookie } });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain("<h1>this site</h1>");
  });
});

describe("a request for a shift report", () => {
  test("needs both scopes", async () => {
    for (const scopes of [["alerts:read"], ["events:read"]] as const) {
      const { secret } = await current.server.addKey({ scopes });
      expect((await current.server.call("GET", PATH, { key: secret })).status).toBe(403);
    }
    expect((await current.server.call("GET", PATH, { key: null })).status).toBe(401);
  });

  test("is refused with every fault in its parameters", async () => {
    const ask = (query: string) => current.server.call("GET", `${PATH}?${query}`);
    const all = await ask("from=yesterday&timezone=Mars/Base&format=pdf&range=1");
    expect(all.status).toBe(400);
    expect(fieldsOf(all).toSorted()).toEqual(["format", "from", "range", "timezone"]);
    for (const query of ["from=now&to=now-1h", "from=now&to=now", "from=now", `from=${at(END + HOUR)}`]) {
      expect(faultsOf(await ask(query))).toEqual([{ field: "from", message: "must be before to" }]);
    }
    for (const query of ["from=now-32d", "from=2026-01-01&to=2026-02-02"]) {
      expect(faultsOf(await ask(query))).toEqual([{ field: "from", message: "is more than 31 days before to" }]);
    }
    // October in Berlin has an hour more than 31 days.
    expect((await ask("from=2026-09-30T22:00:00Z&to=2026-10-31T23:00:00Z")).status).toBe(200);
  });
});
