import { beforeAll, describe, expect, test } from "vitest";
import { alertServer, faultsOf, fieldsOf } from "../../test/alert-server.ts";
import { DAY_MS } from "../lib/time.ts";

// The list and the statistics with many alerts.

const { clock, current, raise, post, get } = alertServer();

describe("the list", () => {
  const names = ["list.a", "list.b", "list.c"];
  let ids: string[] = [];

  beforeAll(async () => {
    ids = [];
    for (let i = 0; i < 30; i++) {
      clock.ms += 1000;
      ids.unshift(
        await raise({
          name: names[i % 3]!,
          severity: (["critical", "high", "low"] as const)[i % 3]!,
          source: i % 2 === 0 ? "custom" : "platform_network",
          title: i % 5 === 0 ? "Door forced at the back" : "Something else",
          eventCount: i,
        }),
      );
    }
    await post("bulk", { alert_ids: ids.slice(0, 10), action: "acknowledge" });
    await post(`${ids[0]}/acknowledge`, { assignee: "anna@example.com" });
    await post("bulk", { alert_ids: ids.slice(5, 15), action: "resolve", resolution: "benign" });
  });

  const list = (query: string) => current.server.call("GET", `/v1/alerts?rule_name=${names.join(",")}&${query}`);
  const idsOf = (answer: { body: any }) => answer.body.data.map(({ id }: { id: string }) => id);

  test("is newest first, with the envelope and 50 items per page", async () => {
    const answer = await list("");
    expect(idsOf(answer)).toEqual(ids);
    expect(answer.body.pagination).toEqual({ total: 30, page: 1, per_page: 50, total_pages: 1 });
    expect(answer.body.meta.request_id).toMatch(/^req_/);
    const { timeline, related_events, match, ...view } = await get(ids[0]!);
    expect([timeline, related_events, match]).not.toContain(undefined);
    const {
      actions_taken: _a,
      acknowledged_at: _b,
      resolved_at: _c,
      rule: _e,
      related_events_total: _f,
      ...listed
    } = view;
    expect(answer.body.data[0]).toEqual(listed);
  });

  test.each([
    ["status=open", (i: number) => i >= 15],
    ["status=open,acknowledged", (i: number) => i < 5 || i >= 15],
    ["severity=critical,low", (i: number) => (29 - i) % 3 !== 1],
    ["source=platform_network", (i: number) => (29 - i) % 2 === 1],
    ["assignee=anna@example.com,ben@example.com", (i: number) => i === 0],
    ["assignee=ben@example.com", () => false],
    ["search=forc%20DOOR", (i: number) => (29 - i) % 5 === 0],
    ["search=list.a", (i: number) => (29 - i) % 3 === 0],
    [
      "search=door&status=resolved&severity=critical,high",
      (i: number) => (29 - i) % 5 === 0 && i >= 5 && i < 15 && (29 - i) % 3 < 2,
    ],
  ])("%s", async (query, matches) => {
    const wanted = ids.filter((_, i) => matches(i));
    const answer = await list(query);
    expect(idsOf(answer)).toEqual(wanted);
    expect(answer.body.pagination.total).toBe(wanted.length);
    const walked: string[] = [];
    for (let after = ""; ;) {
      const page = await list(`${query}&limit=4${after}`);
      walked.push(...idsOf(page));
      const { next_cursor, total } = page.body.pagination;
      expect(total).toBe(wanted.length);
      if (next_cursor === null) break;
      after = `&after=${next_cursor}`;
    }
    expect(walked).toEqual(wanted);
  });

  test("filters by time of creation: from is inclusive, to exclusive", async () => {
    const at = (i: number) => new Date(clock.ms - i * 1000).toISOString();
    expect(idsOf(await list(`from=${at(7)}&to=${at(3)}`))).toEqual(ids.slice(4, 8));
  });

  test("filters by rule name, existing or not", async () => {
    expect((await current.server.call("GET", "/v1/alerts?rule_name=list.b")).body.pagination.total).toBe(10);
    expect((await current.server.call("GET", "/v1/alerts?rule_name=list.z")).body.pagination.total).toBe(0);
  });

  test("sorts by every sort field in both orders", async () => {
    const byCount = await list("sort=event_count&order=asc");
    expect(idsOf(byCount)).toEqual([...ids].reverse());
    const severities = (await list("sort=severity")).body.data.map(({ severity }: any) => severity);
    expect(severities).toEqual(
      ["critical", "high", "low"].flatMap((severity) => Array.from({ length: 10 }, () => severity)),
    );
  });

  test("returns an empty page past the end, with the correct total", async () => {
    const answer = await list("page=7&per_page=10");
    expect(answer.body).toMatchObject({ data: [], pagination: { total: 30, page: 7, per_page: 10, total_pages: 3 } });
    const page = Number.MAX_SAFE_INTEGER;
    for (const sort of ["created_at", "severity"]) {
      const far = await list(`page=${page}&per_page=100&sort=${sort}`);
      expect(far.body).toMatchObject({ data: [], pagination: { total: 30, page } });
    }
  });

  test.each([
    ["status=closed", "status", "must be one of open, acknowledged, resolved"],
    ["status=open,closed", "status", "must be one of open, acknowledged, resolved"],
    ["severity=high,,low", "severity", "has an empty value"],
    ["severity=urgent", "severity", "must be one of critical, high, medium, low, info"],
    ["source=router", "source", "must be one of platform_network"],
    ["from=yesterday", "from", "ISO 8601"],
    ["from=2026-01-02&to=2026-01-01", "from", "is after to"],
    ["per_page=101", "per_page", "from 1 to 100"],
    ["per_page=0", "per_page", "from 1 to 100"],
    ["page=1&limit=5", "page", "cursor mode"],
    ["after=alt_0", "after", "is not the id of an alert"],
    ["sort=title", "sort", "must be one of"],
    ["order=up", "order", "must be one of"],
    ["search=%20", "search", "must not be empty"],
    ["search=%2A%2A", "search", "no word"],
    ["state=open", "state", "is unknown"],
    [`severity=${Array.from({ length: 101 }, () => "high").join(",")}`, "severity", "at most 100"],
  ])("%s is refused", async (query, field, message) => {
    const answer = await current.server.call("GET", `/v1/alerts?${query}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, "validation_error"]);
    expect(faultsOf(answer)).toEqual([{ field, message: expect.stringContaining(message) }]);
  });
});

describe("statistics", () => {
  const MINUTE_MS = 60_000;
  let start = 0;
  const stats = async (query = "") => (await current.server.call("GET", `/v1/alerts/stats${query}`)).body.data;
  const later = (minutes: number) => {
    clock.ms = start + minutes * MINUTE_MS;
  };

  test("count the alerts created in the range, with correct means across reopening and resolving again", async () => {
    clock.ms += 100 * DAY_MS;
    start = clock.ms;
    expect(await stats()).toEqual({
      total: 0,
      by_status: { open: 0, acknowledged: 0, resolved: 0 },
      by_severity: { critical: 0, high: 0, medium: 0, low: 0, info: 0 },
      mean_time_to_acknowledge: null,
      mean_time_to_resolve: null,
    });
    const [a, b, c] = [await raise({ severity: "critical" }), await raise({ severity: "info" }), await raise()];
    later(10);
    await post(`${a}/acknowledge`);
    later(30);
    await post(`${b}/acknowledge`);
    later(60);
    await post(`${a}/resolve`, { resolution: "benign" });
    expect(await stats()).toEqual({
      total: 3,
      by_status: { open: 1, acknowledged: 1, resolved: 1 },
      by_severity: { critical: 1, high: 1, medium: 0, low: 0, info: 1 },
      mean_time_to_acknowledge: "20m",
      mean_time_to_resolve: "1h 0m",
    });
    later(70);
    await post(`${a}/reopen`);
    expect(await stats()).toMatchObject({ mean_time_to_acknowledge: "20m", mean_time_to_resolve: null });
    later(100);
    await post(`${a}/acknowledge`);
    // A second acknowledgement does not change the time of the first.
    expect(await stats()).toMatchObject({ mean_time_to_acknowledge: "20m", by_status: { acknowledged: 2 } });
    later(180);
    await post(`${a}/resolve`, { resolution: "true_positive" });
    later(240);
    await post(`${c}/resolve`, { resolution: "benign" });
    expect(await stats()).toMatchObject({
      by_status: { open: 0, acknowledged: 1, resolved: 2 },
      mean_time_to_acknowledge: "20m",
      mean_time_to_resolve: "3h 30m",
    });
  });

  test("use the time of creation, by default of the last 30 days", async () => {
    const at = (ms: number) => new Date(ms).toISOString();
    expect((await stats(`?from=${at(start)}&to=${at(start + 1)}`)).total).toBe(3);
    expect((await stats(`?from=${at(start + 1)}`)).total).toBe(0);
    expect((await stats(`?to=${at(start)}`)).total).toBe(0);
    expect((await stats(`?from=2020-01-01`)).total).toBe(33);
    clock.ms = start + 30 * DAY_MS;
    expect((await stats()).total).toBe(3);
    clock.ms += 1;
    expect((await stats()).total).toBe(0);
    const backwards = await current.server.call("GET", "/v1/alerts/stats?from=2026-02-01&to=2026-01-01");
    expect([backwards.status, ...fieldsOf(backwards)]).toEqual([400, "from"]);
    expect((await current.server.call("GET", "/v1/alerts/stats?days=7")).status).toBe(400);
  });
});
