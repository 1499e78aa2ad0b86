import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";
import { changed, openTestServer } from "../../test/api-server.ts";
import { openAlerts } from "../alerts/alerts.ts";
import { findingOf } from "../alerts/finding.fixture.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";

const { clock, raise, post, get } = alertServer();

const entries = (alert: any) => alert.timeline.map(({ kind }: { kind: string }) => kind);

describe("a change of many alerts by their ids", () => {
  test.each<[object, object, string[]]>([
    [
      { action: "acknowledge", assignee: "anna@example.com" },
      { status: "acknowledged", assignee: "anna@example.com" },
      ["acknowledged"],
    ],
    [{ action: "assign", assignee: "ben@example.com" }, { status: "open", assignee: "ben@example.com" }, ["assigned"]],
    [{ action: "comment", comment: "seen" }, { status: "open" }, ["commented"]],
    [{ action: "tag", tags: ["VIP"], comment: "ours" }, { tags: ["vip"] }, ["tagged", "commented"]],
    [{ action: "untag", tags: ["vip"] }, { tags: [] }, []],
  ])("takes %j", async (body, state, kinds) => {
    const ids = [await raise(), await raise()];
    const answer = await post("bulk", { alert_ids: ids, ...body });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ succeeded: ids, failed: [], matched: 2, remaining: 0 });
    for (const id of ids) {
      const alert = await get(id);
      expect(alert).toMatchObject(state);
      expect(entries(alert)).toEqual(["created", ...kinds]);
    }
  });

  test("removes assignees and tags", async () => {
    const id = await raise();
    await post("bulk", { alert_ids: [id], action: "assign", assignee: "ben@example.com" });
    await post("bulk", { alert_ids: [id], action: "tag", tags: ["a", "b"] });
    await post("bulk", { alert_ids: [id], action: "assign", assignee: null });
    await post("bulk", { alert_ids: [id], action: "untag", tags: ["a"] });
    expect(await get(id)).toMatchObject({ assignee: null, tags: ["b"] });
  });

  test("only counts in a dry run", async () => {
    const [open, resolved] = [await raise(), await raise()];
    await post(`${resolved}/resolve`, { resolution: "benign" });
    const before = [await get(open), await get(resolved)];
    const body = { alert_ids: [open, resolved], action: "resolve", resolution: "benign", dry_run: true };
    expect((await post("bulk", body)).body.data).toMatchObject({
      dry_run: true,
      matched: 2,
      succeeded: [open],
      failed: [{ id: resolved, error: { code: "conflict" } }],
    });
    expect([await get(open), await get(resolved)]).toEqual(before);
  });

  test.each([
    [{ alert_ids: ["a"], query: {}, action: "reopen" }, ["query"]],
    [{ alert_ids: ["a"], action: "assign" }, ["assignee"]],
    [{ alert_ids: ["a"], action: "acknowledge", assignee: null }, ["assignee"]],
    [{ alert_ids: ["a"], action: "comment" }, ["comment"]],
    [{ alert_ids: ["a"], action: "tag" }, ["tags"]],
    [{ alert_ids: ["a"], action: "untag", tags: [] }, ["tags"]],
    [{ alert_ids: ["a"], action: "reopen", tags: ["a"] }, ["tags"]],
    [{ query: { status: ["closed"] }, action: "reopen" }, ["query.status"]],
    [{ query: { severity: [] }, action: "reopen" }, ["query.severity"]],
    [{ query: { rule_name: ["a,b"] }, action: "reopen" }, ["query.rule_name[0]"]],
    [{ query: { other: 1 }, action: "reopen" }, ["query.other"]],
    [{ query: { from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" }, action: "reopen" }, ["query.from"]],
    [{ query: { search: "***" }, action: "reopen" }, ["query.search"]],
  ])("refuses %j, naming %j", async (body, named) => {
    const answer = await post("bulk", body);
    expect([answer.status, fieldsOf(answer)]).toEqual([400, named]);
  });
});

describe("a change of all alerts that match", () => {
  let ids: string[] = [];
  beforeAll(async () => {
    ids = [];
    for (let i = 0; i < 250; i++) {
      clock.ms += 1000;
      ids.unshift(
        await raise({
          name: `query.${i % 2 === 0 ? "even" : "odd"}`,
          severity: i % 5 === 0 ? "critical" : "low",
          title: i % 50 === 0 ? "Gate forced" : "Something else",
        }),
      );
    }
  });

  test("is counted by a dry run, done in batches, and does not touch others", async () => {
    const query = { rule_name: ["query.even", "query.odd"], severity: "low", status: ["open"] };
    const wanted = ids.filter((_, i) => (249 - i) % 5 !== 0);
    const body = { query, action: "resolve", resolution: "duplicate", comment: "one for all" };
    const dry = await post("bulk", { ...body, dry_run: true });
    expect(dry.status, dry.text).toBe(200);
    const outcome = { matched: 200, succeeded_count: 200, failed_count: 0, remaining: 0, succeeded: wanted };
    expect(dry.body.data).toMatchObject({ dry_run: true, ...outcome });
    expect((await post("bulk", body)).body.data).toMatchObject({ dry_run: false, ...outcome });
    expect(entries(await get(wanted.at(-1)!))).toEqual(["created", "resolved", "commented"]);
    expect((await post("bulk", body)).body.data).toMatchObject({ matched: 0, succeeded: [], failed: [] });
    const others = await post("bulk", { query: { rule_name: "query.even" }, action: "acknowledge", dry_run: true });
    expect(others.body.data).toMatchObject({ matched: 125, succeeded_count: 25, failed_count: 100 });
  });

  test("takes words and a time range", async () => {
    const query = { rule_name: "query.even", search: "gate forced" };
    const tagged = await post("bulk", { query, action: "tag", tags: ["gate"] });
    expect(tagged.body.data).toMatchObject({ matched: 5, succeeded_count: 5 });
    const to = (await get(ids[100]!)).created_at;
    const early = await post("bulk", { query: { tag: "gate", to }, action: "comment", comment: "early" });
    expect(early.body.data.succeeded).toEqual(ids.slice(101).filter((_, i) => (249 - i - 101) % 50 === 0));
  });
});

test("a store that fails in between is reported, with the alerts that were not attempted", async () => {
  let commits = Infinity;
  const around = (store: Store): Store =>
    changed(store, {
      alerts: changed(store.alerts, {
        commit: async (changes) => {
          if (changes.alerts.length > 0 && commits-- <= 0) throw new StoreUnavailable("disk_full", "the disk is full");
          return store.alerts.commit(changes);
        },
      }),
    });
  const server = await openTestServer({ around });
  onTestFinished(() => server.close());
  const alerts = openAlerts({ store: server.store, addException: () => Promise.reject(new Error("unasked")) });
  const findings = Array.from({ length: 350 }, (_, i) => findingOf("failing", [i], { dedupKey: `["${i}"]` }));
  await alerts.raise(findings, undefined);
  const bulk = () =>
    server.call("POST", "/v1/alerts/bulk", { body: { query: { status: "open" }, action: "acknowledge" } });
  commits = 2;
  const { data } = (await bulk()).body;
  expect(data).toMatchObject({ matched: 350, succeeded_count: 200, failed_count: 100, remaining: 50 });
  expect(data.failed[0].error).toEqual({ code: "unavailable", message: "the disk is full" });
  // Nothing has changed: the request as a whole can be sent again.
  commits = 0;
  expect((await bulk()).status).toBe(503);
  commits = Infinity;
  expect((await bulk()).body.data).toMatchObject({ matched: 150, succeeded_count: 150, remaining: 0 });
});
