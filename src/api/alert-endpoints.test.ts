import { describe, expect, test } from "vitest";
import { alertServer, faultsOf, fieldsOf } from "../../test/alert-server.ts";
import { COMMENTS_MAX } from "../model/alert.ts";

const { clock, current, raise, post, get } = alertServer();
const kinds = (alert: { timeline: { kind: string }[] }) => alert.timeline.map(({ kind }) => kind);

describe("one alert", () => {
  test("is returned with its rule, group, events and timeline", async () => {
    const event = (
      await current.server.call("POST", "/v1/events", {
        body: { type: "login_failure", source: "custom", data: { n: 1 } },
      })
    ).body.data;
    const id = await raise({
      name: "test.whole",
      eventCount: 3,
      events: [
        { id: event.id, timestampMs: clock.ms },
        { id: "evt_removed_by_retention", timestampMs: clock.ms - 5 },
      ],
    });
    const answer = await current.server.call("GET", `/v1/alerts/${id}`);
    expect(answer.status).toBe(200);
    const at = new Date(clock.ms).toISOString();
    expect(answer.body.data).toEqual({
      id,
      match: null,
      tags: [],
      entities: [],
      entities_cut: false,
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

  test("that does not exist is reported as not found by every call", async () => {
    for (const [method, path, body] of [
      ["GET", "alt_0", undefined],
      ["POST", "alt_0/acknowledge", undefined],
      ["POST", "alt_0/resolve", { resolution: "benign" }],
      ["POST", "alt_0/reopen", undefined],
      ["POST", "alt_0/comments", { body: "x" }],
    ] as const) {
      const answer = await current.server.call(method, `/v1/alerts/${path}`, { body });
      expect([answer.status, answer.body.error.code], path).toEqual([404, "not_found"]);
    }
  });
});

describe("transitions", () => {
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

  test("are on the timeline with the name of the key, oldest first", async () => {
    const id = await raise();
    const anna = (await current.server.addKey({ name: "anna" })).secret;
    const ben = (await current.server.addKey({ name: "ben" })).secret;
    clock.ms += 60_000;
    await post(`${id}/acknowledge`, { comment: "mine", assignee: "anna@example.com" }, anna);
    clock.ms += 60_000;
    await post(`${id}/acknowledge`, { assignee: "ben@example.com" }, anna);
    clock.ms += 60_000;
    const resolved = await post(
      `${id}/resolve`,
      { resolution: "true_positive", actions_taken: ["locked the account"] },
      ben,
    );
    const bens = await current.server.call("GET", "/v1/alerts?assignee=BEN@example.com");
    expect(bens.body.data.map((each: { id: string }) => each.id)).toEqual([id]);
    const { timeline, ...alert } = resolved.body.data;
    const at = (minutes: number) => new Date(clock.ms - minutes * 60_000).toISOString();
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

  test("of two concurrent resolutions one returns 200 and the other 409", async () => {
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
    expect(fieldsOf(answer)).toEqual([field]);
    expect(await get(id)).toMatchObject({ status: "open", timeline: [{ kind: "created" }] });
  });

  test("resolve without a body names the required field and lists the resolutions", async () => {
    const id = await raise();
    expect((await post(`${id}/resolve`)).status).toBe(400);
    const answer = await post(`${id}/resolve`, { resolution: "fixed" });
    expect(faultsOf(answer)[0]!.message).toBe("must be one of true_positive, false_positive, benign, duplicate");
  });

  test("an exception also requires the scope rules:write, without which nothing changes", async () => {
    const id = await raise();
    const { secret } = await current.server.addKey({ scopes: ["alerts:read", "alerts:write"] });
    const body = {
      resolution: "false_positive",
      exception: { conditions: [{ field: "type", equals: "x" }], reason: "lab" },
    };
    const answer = await post(`${id}/resolve`, body, secret);
    expect([answer.status, answer.body.error.code]).toEqual([403, "forbidden"]);
    expect(answer.body.error.message).toContain("rules:write");
    expect((await get(id)).status).toBe("open");
    // The rule must exist as well: a deleted one cannot have exceptions.
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
    const { secret } = await current.server.addKey({ scopes: [other, "events:read", "rules:write"] });
    const answer = await current.server.call(method, path, { key: secret });
    expect(answer.status).toBe(403);
    expect(answer.body.error.message).toContain(scope);
    expect((await current.server.call(method, path, { key: null })).status).toBe(401);
  });
});

describe("comments", () => {
  test("are returned as sent: Markdown, script, any character, up to 65,536 bytes", async () => {
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
        created_at: new Date(clock.ms).toISOString(),
      });
    }
    const { timeline, status } = await get(id);
    expect(status).toBe("open");
    expect(timeline.slice(1).map(({ comment }: any) => comment.body)).toEqual(bodies);
    const kept = await current.server.call("GET", `/v1/alerts/${id}`);
    expect(kept.headers["x-content-type-options"]).toBe("nosniff");
  });

  test("are refused past the limit, with a message that says so", async () => {
    const id = await raise();
    const alert = (await current.server.store.alerts.get(id))!;
    await current.server.store.alerts.commit({
      alerts: [{ ...alert, commentCount: COMMENTS_MAX, version: 2 }],
      timeline: [],
    });
    expect((await post(`${id}/comments`, { body: "one more" })).status).toBe(409);
    expect((await post(`${id}/acknowledge`, { comment: "one more" })).status).toBe(409);
    expect((await post(`${id}/acknowledge`)).status).toBe(200);
  });
});

describe("bulk", () => {
  test("processes each alert independently", async () => {
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
      dry_run: false,
      matched: 4,
      succeeded_count: 2,
      failed_count: 2,
      remaining: 0,
      succeeded: open,
      failed: [
        { id: "alt_0", error: { code: "not_found", message: expect.stringContaining("alt_0") } },
        { id: resolved, error: { code: "conflict", message: expect.stringContaining("is resolved") } },
      ],
      undo_id: expect.stringMatching(/^undo_/),
    });
    for (const id of open) {
      const alert = await get(id);
      expect(alert).toMatchObject({ status: "resolved", resolution: "duplicate" });
      expect(kinds(alert)).toEqual(["created", "resolved", "commented"]);
    }
    expect((await get(resolved)).resolution).toBe("benign");
    const reopened = await post("bulk", { alert_ids: [...open, resolved], action: "reopen" });
    expect(reopened.body.data).toMatchObject({ succeeded: [...open, resolved], failed: [] });
    const acknowledged = await post("bulk", { alert_ids: open, action: "acknowledge", comment: "ours" });
    expect(acknowledged.body.data.succeeded).toEqual(open);
    expect(await get(open[0]!)).toMatchObject({ status: "acknowledged", resolution: null });
  });

  test("accepts 500 alerts and no more", async () => {
    const name = "test.bulk_of_500";
    const ids: string[] = [];
    for (let i = 0; i < 500; i++) ids.push(await raise({ name }));
    const answer = await post("bulk", { alert_ids: ids, action: "resolve", resolution: "benign" });
    expect(answer.body.data).toMatchObject({ succeeded: ids, failed: [], succeeded_count: 500 });
    expect(
      (await current.server.call("GET", `/v1/alerts?rule_name=${name}&status=resolved&limit=1`)).body.pagination.total,
    ).toBe(500);
    const more = await post("bulk", { alert_ids: [...ids, "alt_501"], action: "reopen" });
    expect([more.status, ...fieldsOf(more)]).toEqual([400, "alert_ids"]);
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
    expect(fieldsOf(answer)).toEqual(named);
  });
});

test("alerts, timelines and totals survive a restart", async () => {
  const id = await raise({ name: "test.restart" });
  await post(`${id}/acknowledge`, { comment: "before" });
  const before = await get(id);
  current.server = await current.server.restart();
  const key = (await current.server.addKey()).secret;
  expect((await current.server.call("GET", `/v1/alerts/${id}`, { key })).body.data).toEqual(before);
  const listed = await current.server.call("GET", "/v1/alerts?rule_name=test.restart&status=acknowledged", { key });
  expect(listed.body.pagination.total).toBe(1);
});
