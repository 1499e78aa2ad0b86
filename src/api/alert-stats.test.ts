import { beforeAll, describe, expect, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";
import { DAY_MS } from "../lib/time.ts";

const { clock, current, raise, post } = alertServer();
const start = Date.UTC(2026, 10, 10);
const at = (ms: number) => new Date(ms).toISOString();
const stats = (query: string) => current.server.call("GET", `/v1/alerts/stats?${query}`);

describe("trends of alerts", () => {
  beforeAll(async () => {
    for (const [day, name] of [
      [0, "trend.a"],
      [0, "trend.b"],
      [2, "trend.a"],
      [2, "trend.c"],
    ] as const) {
      clock.ms = start + day * DAY_MS + 3_600_000;
      const id = await raise({ name, severity: day === 0 ? "critical" : "low" });
      if (name !== "trend.a") continue;
      clock.ms += 60_000 * (day + 1);
      await post(`${id}/acknowledge`);
      clock.ms += 3_600_000;
      await post(`${id}/resolve`, { resolution: "benign" });
    }
  });

  test("have every interval of the range, with means and the counts of the most frequent rules", async () => {
    const { body } = await stats(`interval=1d&rules=1&from=${at(start)}&to=${at(start + 3 * DAY_MS)}`);
    const { intervals, rules, ...totals } = body.data;
    expect(totals).toEqual((await stats(`from=${at(start)}&to=${at(start + 3 * DAY_MS)}`)).body.data);
    expect(rules).toEqual([{ rule_name: "trend.a", count: 2 }]);
    const none = { critical: 0, high: 0, medium: 0, low: 0, info: 0 };
    expect(intervals).toEqual([
      {
        from: at(start),
        total: 2,
        by_status: { open: 1, acknowledged: 0, resolved: 1 },
        by_severity: { ...none, critical: 2 },
        mean_time_to_acknowledge: "1m",
        mean_time_to_resolve: "1h 1m",
        mean_seconds_to_acknowledge: 60,
        mean_seconds_to_resolve: 3660,
        by_rule: [1],
        other_rules: 1,
      },
      {
        from: at(start + DAY_MS),
        total: 0,
        by_status: { open: 0, acknowledged: 0, resolved: 0 },
        by_severity: none,
        mean_time_to_acknowledge: null,
        mean_time_to_resolve: null,
        mean_seconds_to_acknowledge: null,
        mean_seconds_to_resolve: null,
        by_rule: [0],
        other_rules: 0,
      },
      expect.objectContaining({
        from: at(start + 2 * DAY_MS),
        total: 2,
        by_rule: [1],
        mean_seconds_to_acknowledge: 180,
      }),
    ]);
  });

  test("cover the last 30 days by default, up to now", async () => {
    const { intervals, rules, total } = (await stats("interval=1d")).body.data;
    expect(intervals).toHaveLength(31);
    expect([total, rules.length]).toEqual([4, 3]);
    expect(intervals.reduce((sum: number, each: any) => sum + each.total, 0)).toBe(4);
    expect(intervals.at(-1).from).toBe(at(start + 2 * DAY_MS));
  });

  test.each([
    ["interval=day", "interval"],
    ["interval=0h", "interval"],
    ["interval=1m", "interval"],
    ["interval=1s&from=2026-01-01&to=2027-01-01", "interval"],
    ["rules=5", "rules"],
    ["interval=1d&rules=51", "rules"],
    ["interval=1d&from=2026-02-01&to=2026-01-01", "from"],
  ])("refuse %s on %s", async (query, field) => {
    const answer = await stats(query);
    expect([answer.status, ...fieldsOf(answer)]).toEqual([400, field]);
  });
});
