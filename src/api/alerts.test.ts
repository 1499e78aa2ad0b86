import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { openAlerts, type Alerts } from "../alerts/alerts.ts";
import { DAY_MS } from "../lib/time.ts";
import { COMMENTS_MAX } from "../model/alert.ts";
import type { Finding } from "../model/finding.ts";

let clock = Date.UTC(2026, 10, 15, 12);
let server: TestServer;
let alerts: Alerts;

beforeAll(async () => {
  server = await openTestServer({ now: () => clock });
  // As detection does, on the server's own store.
  alerts = openAlerts({
    store: server.store,
    now: () => clock,
    addException: () => Promise.reject(new Error("unasked")),
  });
});
afterAll(() => server.close());

let made = 0;

const FINDING = {
  severity: "high",
  foldKey: '["192.0.2.17"]',
  foldMs: 3_600_000,
  group: { field: "raw.src_ip", value: "192.0.2.17" },
  eventId: null,
  source: "custom",
  title: "Failed logins from 192.0.2.17",
  description: "Somebody tries passwords.",
  enrichment: {},
  eventCount: 1,
  events: [],
} satisfies Partial<Finding>;

async function raise(more: Partial<Finding> & { name?: string } = {}): Promise<string> {
  const name = more.name ?? `test.rule_${++made}`;
  const finding: Finding = {
    ...FINDING,
    rule: { id: `rule_of_${name}`, name, description: "A rule.", tags: ["attack.t1110"], channels: [] },
    foldKey: `["${++made}"]`,
    firstEventMs: clock,
    lastEventMs: clock,
    ...more,
  };
  await alerts.raise([finding], undefined);
  const found = await server.store.alerts.unresolved([
    { ruleId: finding.rule.id, foldKey: finding.foldKey, endsAfterMs: 0, beginsBeforeMs: clock * 2 },
  ]);
  return found[0]!.id;
}

const post = (path: string, body?: unknown, key?: string) =>
  server.call("POST", `/v1/alerts/${path}`, { body, ...(key !== undefined && { key }) });
const get = async (id: string) => (await server.call("GET", `/v1/alerts/${id}`)).body.data;
const faults = (answer: { body: any }) => answer.body.error.details as { field: string; message: string }[];
const fields = (answer: { body: any }) => faults(answer).map(({ field }) => field);
const kinds = (alert: { timeline: { kind: string }[] }) => alert.timeline.map(({ kind }) => kind);

describe("one alert", () => {
  test("is given with its rule, its group, its events and its timeline", async () => {
    const event = (
      await server.call("POST", "/v1/events", { body: { type: "login_failure", source: "custom", data: { n: 1 } } })
    ).body.data;
    const id = await raise({
      name: "test.whole",
      eventCount: 3,
      events: [
        { id: event.id, timestampMs: clock },
        { id: "evt_removed_by_retention", timestampMs: clock - 5 },
      ],
    });
    const answer = await server.call("GET", `/v1/alerts/${id}`);
    expect(answer.status).toBe(200);
    const at = new Date(clock).toISOString();
    expect(answer.body.data).toEqual({
      id,
      rule_name: "test.whole",
      title: "Failed logins from 192.0.2.17",
      description: "Somebody tries passwords.",
      severity: "high",
      status: "open",
      source: "custom",
      event_count: 3,
      first_event_at: at,
      last_event_at: at,
      created_at: at,
      enrichment: {},
      ai_analysis: null,
      assignee: null,
      resolution: null,
      actions_taken: [],
      acknowledged_at: null,
      resolved_at: null,
      group: { field: "raw.src_ip", value: "192.0.2.17" },
      rule: { id: "rule_of_test.whole", name: "test.whole", description: "A rule.", tags: ["attack.t1110"] },
      related_events: [event],
      related_events_total: 3,
      timeline: [{ id: expect.any(String), at, kind: "created", actor: "system", count: 3 }],
    });
  });

  test("that does not exist is not found, whatever is asked of it", async () => {
    for (const [method, path, body] of [
      ["GET", "alt_0", undefined],
      ["POST", "alt_0/acknowledge", undefined],
      ["POST", "alt_0/resolve", { resolution: "benign" }],
      ["POST", "alt_0/reopen", undefined],
      ["POST", "alt_0/comments", { body: "x" }],
    ] as const) {
      const answer = await server.call(method, `/v1/alerts/${path}`, { body });
      expect([answer.status, answer.body.error.code], path).toEqual([404, "not_found"]);
    }
  });
});

describe("moves", () => {
  const BODIES: Record<string, unknown> = {
    acknowledge: undefined,
    resolve: { resolution: "benign" },
    reopen: undefined,
  };
  const alertThatIs = async (status: string) => {
    const id = await raise();
    if (status === "acknowledged") await post(`${id}/acknowledge`);
    if (status === "resolved") await post(`${id}/resolve`, BODIES["resolve"]);
    return id;
  };

  test.each([
    ["open", "acknowledge", "acknowledged"],
    ["open", "resolve", "resolved"],
    ["open", "reopen", 409],
    ["acknowledged", "acknowledge", "acknowledged"],
    ["acknowledged", "resolve", "resolved"],
    ["acknowledged", "reopen", "open"],
    ["resolved", "acknowledge", 409],
    ["resolved", "resolve", 409],
    ["resolved", "reopen", "open"],
  ])("%s, %s: %s", async (from, action, outcome) => {
    const id = await alertThatIs(from);
    const answer = await post(`${id}/${action}`, BODIES[action]);
    if (outcome === 409) {
      expect([answer.status, answer.body.error.code]).toEqual([409, "conflict"]);
      expect(answer.body.error.message).toContain(from);
      expect((await get(id)).status).toBe(from);
    } else {
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.data.status).toBe(outcome);
      expect(answer.body.data).toEqual(await get(id));
    }
  });

  test("everything is on the timeline with the name of the key, oldest first", async () => {
    const id = await raise();
    const anna = server.addKey({ name: "anna" }).secret;
    const ben = server.addKey({ name: "ben" }).secret;
    clock += 60_000;
    await post(`${id}/acknowledge`, { comment: "mine", assignee: "anna@example.com" }, anna);
    clock += 60_000;
    await post(`${id}/acknowledge`, { assignee: "ben@example.com" }, anna);
    clock += 60_000;
    const resolved = await post(
      `${id}/resolve`,
      { resolution: "true_positive", actions_taken: ["locked the account"] },
      ben,
    );
    const bens = await server.call("GET", "/v1/alerts?assignee=BEN@example.com");
    expect(bens.body.data.map((each: { id: string }) => each.id)).toEqual([id]);
    const { timeline, ...alert } = resolved.body.data;
    const at = (minutes: number) => new Date(clock - minutes * 60_000).toISOString();
    const entry = { id: expect.any(String) };
    expect(timeline).toEqual([
      { ...entry, at: at(3), kind: "created", actor: "system", count: expect.any(Number) },
      { ...entry, at: at(2), kind: "acknowledged", actor: "anna", assignee: "anna@example.com" },
      {
        ...entry,
        at: at(2),
        kind: "commented",
        actor: "anna",
        comment: { id: expect.stringMatching(/^cmt_/), body: "mine", author: "anna", created_at: at(2) },
      },
      { ...entry, at: at(1), kind: "assigned", actor: "anna", assignee: "ben@example.com" },
      {
        ...entry,
        at: at(0),
        kind: "resolved",
        actor: "ben",
        resolution: "true_positive",
        actions_taken: ["locked the account"],
      },
    ]);
    expect(alert).toMatchObject({
      status: "resolved",
      assignee: "ben@example.com",
      resolution: "true_positive",
      actions_taken: ["locked the account"],
      acknowledged_at: at(2),
      resolved_at: at(0),
    });
    const reopened = (await post(`${id}/reopen`, { comment: "not over" }, ben)).body.data;
    expect(reopened).toMatchObject({
      status: "open",
      assignee: "ben@example.com",
      resolution: null,
      actions_taken: [],
      acknowledged_at: null,
      resolved_at: null,
    });
    expect(kinds(reopened).slice(-2)).toEqual(["reopened", "commented"]);
  });

  test("two people who resolve at once: one 200, one 409", async () => {
    for (let i = 0; i < 5; i++) {
      const id = await raise();
      const answers = await Promise.all(
        ["benign", "duplicate"].map((resolution) => post(`${id}/resolve`, { resolution })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      const winner = answers.find(({ status }) => status === 200)!.body.data;
      expect(await get(id)).toEqual(winner);
      expect(kinds(winner)).toEqual(["created", "resolved"]);
    }
  });

  test.each([
    ["acknowledge", { assignee: "nobody" }, "assignee"],
    ["acknowledge", { assignee: "a@b@example.com" }, "assignee"],
    ["acknowledge", { assignee: `${"a".repeat(250)}@example.com` }, "assignee"],
    ["acknowledge", { comment: "" }, "comment"],
    ["acknowledge", { comment: 5 }, "comment"],
    ["acknowledge", { coment: "x" }, "coment"],
    ["resolve", {}, "resolution"],
    ["resolve", { resolution: "fixed" }, "resolution"],
    ["resolve", { resolution: "benign", actions_taken: "none" }, "actions_taken"],
    ["resolve", { resolution: "benign", actions_taken: ["a", ""] }, "actions_taken[1]"],
    ["resolve", { resolution: "benign", actions_taken: Array.from({ length: 101 }, () => "a") }, "actions_taken"],
    ["resolve", { resolution: "benign", exception: { conditions: [{ field: "type", equals: "x" }] } }, "exception"],
    ["resolve", { resolution: "false_positive", exception: { conditions: [] } }, "exception.conditions"],
    [
      "resolve",
      { resolution: "false_positive", exception: { conditions: [{ field: "type", regex: "(" }] } },
      "exception.conditions[0].regex",
    ],
    [
      "resolve",
      {
        resolution: "false_positive",
        exception: { conditions: [{ not: { field: "source", equals: "elsewhere" } }] },
      },
      "exception.conditions[0].not.equals",
    ],
    [
      "resolve",
      {
        resolution: "false_positive",
        exception: { conditions: [{ field: "type", equals: "x" }], expires_at: "2020-01-01" },
      },
      "exception.expires_at",
    ],
    ["reopen", { resolution: "benign" }, "resolution"],
    ["comments", {}, "body"],
    ["comments", { body: "" }, "body"],
    ["comments", { body: " \n" }, "body"],
    ["comments", { body: "x".repeat(65_537) }, "body"],
    ["comments", { body: "é".repeat(32_768) + "x" }, "body"],
    ["comments", { body: null }, "body"],
  ])("%s refuses %j, naming %s", async (action, body, field) => {
    const id = await raise();
    const answer = await post(`${id}/${action}`, body);
    expect([answer.status, answer.body.error?.code]).toEqual([400, "validation_error"]);
    expect(fields(answer)).toEqual([field]);
    expect(await get(id)).toMatchObject({ status: "open", timeline: [{ kind: "created" }] });
  });

  test("resolve without a body says what it needs, and lists the resolutions", async () => {
    const id = await raise();
    expect((await post(`${id}/resolve`)).status).toBe(400);
    const answer = await post(`${id}/resolve`, { resolution: "fixed" });
    expect(faults(answer)[0]!.message).toBe("must be one of true_positive, false_positive, benign, duplicate");
  });

  test("an exception needs the scope of rules too, and then nothing is done without it", async () => {
    const id = await raise();
    const { secret } = server.addKey({ scopes: ["alerts:read", "alerts:write"] });
    const body = {
      resolution: "false_positive",
      exception: { conditions: [{ field: "type", equals: "x" }], reason: "lab" },
    };
    const answer = await post(`${id}/resolve`, body, secret);
    expect([answer.status, answer.body.error.code]).toEqual([403, "forbidden"]);
    expect(answer.body.error.message).toContain("rules:write");
    expect((await get(id)).status).toBe("open");
    // And a rule: one that is gone cannot have exceptions.
    const gone = await post(`${id}/resolve`, body);
    expect([gone.status, gone.body.error.code]).toEqual([404, "not_found"]);
    expect((await get(id)).status).toBe("open");
  });

  test.each([
    ["GET", "/v1/alerts", "alerts:read"],
    ["GET", "/v1/alerts/stats", "alerts:read"],
    ["GET", "/v1/alerts/alt_0", "alerts:read"],
    ["POST", "/v1/alerts/alt_0/acknowledge", "alerts:write"],
    ["POST", "/v1/alerts/alt_0/resolve", "alerts:write"],
    ["POST", "/v1/alerts/alt_0/reopen", "alerts:write"],
    ["POST", "/v1/alerts/alt_0/comments", "alerts:write"],
    ["POST", "/v1/alerts/bulk", "alerts:write"],
  ])("%s %s needs %s", async (method, path, scope) => {
    const other = scope === "alerts:read" ? ("alerts:write" as const) : ("alerts:read" as const);
    const { secret } = server.addKey({ scopes: [other, "events:read", "rules:write"] });
    const answer = await server.call(method, path, { key: secret });
    expect(answer.status).toBe(403);
    expect(answer.body.error.message).toContain(scope);
    expect((await server.call(method, path, { key: null })).status).toBe(401);
  });
});

describe("comments", () => {
  test("are given back as they were sent: Markdown, script, any character, up to 65,536 bytes", async () => {
    const id = await raise();
    const bodies = [
      "# Found\n\n- [x] <script>alert(document.cookie)</script> <img src=x onerror=alert(1)>\n\n[click](javascript:alert(1))",
      " \u0000 é 東京 😀 ",
      "x".repeat(65_536),
      "é".repeat(32_768),
      "x",
    ];
    for (const body of bodies) {
      const answer = await post(`${id}/comments`, { body });
      expect(answer.status).toBe(201);
      expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
      expect(answer.body.data).toEqual({
        id: expect.stringMatching(/^cmt_[0-9a-f]{32}$/),
        body,
        author: "test",
        created_at: new Date(clock).toISOString(),
      });
    }
    const { timeline, status } = await get(id);
    expect(status).toBe("open");
    expect(timeline.slice(1).map(({ comment }: any) => comment.body)).toEqual(bodies);
    const kept = await server.call("GET", `/v1/alerts/${id}`);
    expect(kept.headers["x-content-type-options"]).toBe("nosniff");
  });

  test("have an end, which says so", async () => {
    const id = await raise();
    const alert = (await server.store.alerts.get(id))!;
    await server.store.alerts.commit({ alerts: [{ ...alert, commentCount: COMMENTS_MAX, version: 2 }], timeline: [] });
    expect((await post(`${id}/comments`, { body: "one more" })).status).toBe(409);
    expect((await post(`${id}/acknowledge`, { comment: "one more" })).status).toBe(409);
    expect((await post(`${id}/acknowledge`)).status).toBe(200);
  });
});

describe("bulk", () => {
  test("each alert stands for itself", async () => {
    const open = [await raise(), await raise()];
    const resolved = await raise();
    await post(`${resolved}/resolve`, { resolution: "benign" });
    const answer = await post("bulk", {
      alert_ids: [open[0], "alt_0", resolved, open[1]],
      action: "resolve",
      resolution: "duplicate",
      comment: "one scan",
    });
    expect(answer.status).toBe(200);
    expect(answer.body.data).toEqual({
      succeeded: open,
      failed: [
        { id: "alt_0", error: { code: "not_found", message: expect.stringContaining("alt_0") } },
        { id: resolved, error: { code: "conflict", message: expect.stringContaining("is resolved") } },
      ],
    });
    for (const id of open) {
      const alert = await get(id);
      expect(alert).toMatchObject({ status: "resolved", resolution: "duplicate" });
      expect(kinds(alert)).toEqual(["created", "resolved", "commented"]);
    }
    expect((await get(resolved)).resolution).toBe("benign");
    const reopened = await post("bulk", { alert_ids: [...open, resolved], action: "reopen" });
    expect(reopened.body.data).toEqual({ succeeded: [...open, resolved], failed: [] });
    const acknowledged = await post("bulk", { alert_ids: open, action: "acknowledge", comment: "ours" });
    expect(acknowledged.body.data.succeeded).toEqual(open);
    expect(await get(open[0]!)).toMatchObject({ status: "acknowledged", resolution: null });
  });

  test("takes 500, and not one more", async () => {
    const name = "test.bulk_of_500";
    const ids: string[] = [];
    for (let i = 0; i < 500; i++) ids.push(await raise({ name }));
    const answer = await post("bulk", { alert_ids: ids, action: "resolve", resolution: "benign" });
    expect(answer.body.data).toEqual({ succeeded: ids, failed: [] });
    expect(
      (await server.call("GET", `/v1/alerts?rule_name=${name}&status=resolved&limit=1`)).body.pagination.total,
    ).toBe(500);
    const more = await post("bulk", { alert_ids: [...ids, "alt_501"], action: "reopen" });
    expect([more.status, ...fields(more)]).toEqual([400, "alert_ids"]);
  });

  test.each([
    [{ action: "reopen" }, ["alert_ids"]],
    [{ alert_ids: [], action: "reopen" }, ["alert_ids"]],
    [{ alert_ids: ["a", "b", "a", "a"], action: "reopen" }, ["alert_ids[2]", "alert_ids[3]"]],
    [{ alert_ids: ["a", 5], action: "reopen" }, ["alert_ids[1]"]],
    [{ alert_ids: ["a"], action: "delete" }, ["action"]],
    [{ alert_ids: ["a"], action: "resolve" }, ["resolution"]],
    [{ alert_ids: ["a"], action: "resolve", resolution: "fixed" }, ["resolution"]],
    [{ alert_ids: ["a"], action: "reopen", resolution: "benign" }, ["resolution"]],
    [{ alert_ids: ["a"], action: "reopen", comment: "" }, ["comment"]],
    [{ alert_ids: ["a"], action: "reopen", assignee: "a@example.com" }, ["assignee"]],
  ])("refuses %j, naming %j", async (body, named) => {
    const answer = await post("bulk", body);
    expect([answer.status, answer.body.error.code]).toEqual([400, "validation_error"]);
    expect(fields(answer)).toEqual(named);
  });
});

describe("the list", () => {
  const names = ["list.a", "list.b", "list.c"];
  let ids: string[] = [];

  beforeAll(async () => {
    ids = [];
    for (let i = 0; i < 30; i++) {
      clock += 1000;
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

  const list = (query: string) => server.call("GET", `/v1/alerts?rule_name=${names.join(",")}&${query}`);
  const idsOf = (answer: { body: any }) => answer.body.data.map(({ id }: { id: string }) => id);

  test("is newest first, with the envelope and 50 on a page", async () => {
    const answer = await list("");
    expect(idsOf(answer)).toEqual(ids);
    expect(answer.body.pagination).toEqual({ total: 30, page: 1, per_page: 50, total_pages: 1 });
    expect(answer.body.meta.request_id).toMatch(/^req_/);
    const { timeline, related_events, ...view } = await get(ids[0]!);
    expect([timeline, related_events]).not.toContain(undefined);
    const {
      actions_taken: _a,
      acknowledged_at: _b,
      resolved_at: _c,
      group: _d,
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

  test("by time of creation: from is inclusive, to exclusive", async () => {
    const at = (i: number) => new Date(clock - i * 1000).toISOString();
    expect(idsOf(await list(`from=${at(7)}&to=${at(3)}`))).toEqual(ids.slice(4, 8));
  });

  test("by one rule name, and by none that there is", async () => {
    expect((await server.call("GET", "/v1/alerts?rule_name=list.b")).body.pagination.total).toBe(10);
    expect((await server.call("GET", "/v1/alerts?rule_name=list.z")).body.pagination.total).toBe(0);
  });

  test("sorted by what one asks for, in either order", async () => {
    const byCount = await list("sort=event_count&order=asc");
    expect(idsOf(byCount)).toEqual([...ids].reverse());
    const severities = (await list("sort=severity")).body.data.map(({ severity }: any) => severity);
    expect(severities).toEqual(
      ["critical", "high", "low"].flatMap((severity) => Array.from({ length: 10 }, () => severity)),
    );
  });

  test("pages past the end are empty, with the true total", async () => {
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
    ["state=open", "state", "is not known here"],
    [`severity=${Array.from({ length: 101 }, () => "high").join(",")}`, "severity", "at most 100"],
  ])("%s is refused", async (query, field, message) => {
    const answer = await server.call("GET", `/v1/alerts?${query}`);
    expect([answer.status, answer.body.error.code]).toEqual([400, "validation_error"]);
    expect(faults(answer)).toEqual([{ field, message: expect.stringContaining(message) }]);
  });
});

describe("statistics", () => {
  const MINUTE_MS = 60_000;
  let start = 0;
  const stats = async (query = "") => (await server.call("GET", `/v1/alerts/stats${query}`)).body.data;
  const later = (minutes: number) => {
    clock = start + minutes * MINUTE_MS;
  };

  test("count what was created in the range, and the means are right across reopen and re-resolve", async () => {
    clock += 100 * DAY_MS;
    start = clock;
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
    // The second acknowledgement does not make the first one later.
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

  test("the range is of the time of creation, by default the last 30 days", async () => {
    const at = (ms: number) => new Date(ms).toISOString();
    expect((await stats(`?from=${at(start)}&to=${at(start + 1)}`)).total).toBe(3);
    expect((await stats(`?from=${at(start + 1)}`)).total).toBe(0);
    expect((await stats(`?to=${at(start)}`)).total).toBe(0);
    expect((await stats(`?from=2020-01-01`)).total).toBeGreaterThan(500);
    clock = start + 30 * DAY_MS;
    expect((await stats()).total).toBe(3);
    clock += 1;
    expect((await stats()).total).toBe(0);
    const backwards = await server.call("GET", "/v1/alerts/stats?from=2026-02-01&to=2026-01-01");
    expect([backwards.status, ...fields(backwards)]).toEqual([400, "from"]);
    expect((await server.call("GET", "/v1/alerts/stats?days=7")).status).toBe(400);
  });
});

test("alerts, timelines and totals are there after a restart", async () => {
  const id = await raise({ name: "test.restart" });
  await post(`${id}/acknowledge`, { comment: "before" });
  const before = await get(id);
  server = await server.restart();
  const key = server.addKey().secret;
  expect((await server.call("GET", `/v1/alerts/${id}`, { key })).body.data).toEqual(before);
  const listed = await server.call("GET", "/v1/alerts?rule_name=test.restart&status=acknowledged", { key });
  expect(listed.body.pagination.total).toBe(1);
});

describe("alerts that were resolved as long ago as retention.alerts_days says", () => {
  test("are gone after a start, from every answer; those that nobody has resolved stay", async () => {
    const start = clock;
    let site = await openTestServer({ now: () => clock });
    const made = openAlerts({
      store: site.store,
      now: () => clock,
      addException: () => Promise.reject(new Error("unasked")),
    });
    const raiseThere = async (name: string) => {
      const rule = { id: `rule_of_${name}`, name, description: "", tags: [], channels: [] };
      await made.raise([{ ...FINDING, rule, firstEventMs: clock, lastEventMs: clock }], undefined);
      return (await site.call("GET", `/v1/alerts?rule_name=${name}`)).body.data[0].id as string;
    };
    const resolve = (id: string) => site.call("POST", `/v1/alerts/${id}/resolve`, { body: { resolution: "benign" } });
    const [gone, open, young] = [
      await raiseThere("old.gone"),
      await raiseThere("old.open"),
      await raiseThere("old.young"),
    ];
    await site.call("POST", `/v1/alerts/${gone}/comments`, { body: { body: "seen" } });
    await resolve(gone);
    clock = start + 2 * DAY_MS;
    await resolve(young);
    clock = start + 731 * DAY_MS;
    site = await site.restart();
    const status = async (id: string) => (await site.call("GET", `/v1/alerts/${id}`)).status;
    await expect.poll(() => status(gone)).toBe(404);
    expect([await status(open), await status(young)]).toEqual([200, 200]);
    const list = (await site.call("GET", "/v1/alerts?search=passwords")).body;
    expect(list.data.map(({ id }: { id: string }) => id).sort()).toEqual([open, young].sort());
    expect(list.pagination.total).toBe(2);
    const from = encodeURIComponent(new Date(start - DAY_MS).toISOString());
    const stats = (await site.call("GET", `/v1/alerts/stats?from=${from}`)).body.data;
    expect(stats).toMatchObject({ total: 2, by_status: { open: 1, acknowledged: 0, resolved: 1 } });
    for (const [path, body] of [
      ["reopen", undefined],
      ["comments", { body: "late" }],
      ["analyze", undefined],
    ] as const) {
      expect((await site.call("POST", `/v1/alerts/${gone}/${path}`, { body })).status, path).toBe(404);
    }
    expect((await site.call("GET", "/metrics")).text).toMatch(/^tocsin_alerts_removed_total 1$/m);
    expect(site.log.filter(({ msg }) => msg === "old alerts removed")).toMatchObject([{ alerts: 1 }]);
    await site.close();
    clock = start;
  });
});
