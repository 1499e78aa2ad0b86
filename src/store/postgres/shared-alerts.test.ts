import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { idMaker } from "../../lib/id.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { SYSTEM, type Alert } from "../../model/alert.ts";
import type { NewNotification } from "../../model/notification.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { LeaseLost } from "../ports/lease-store.ts";
import type { CasePart } from "../ports/store.ts";
import { newAlert, nextAlert, summaryOf } from "../testing/new-alert.ts";
import { openAllPostgresCases } from "./postgres-cases.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// Two nodes on one database, and what they share about alerts.

const log = pino({ level: "silent" });
const newNotificationId = idMaker("ntf_");
const newDeliveryId = idMaker("dlv_");
const newEntryId = idMaker("tln_");
const PAGE = { mode: "page", page: 1, size: 100 } as const;

describeWithPostgres("alerts of nodes that share PostgreSQL", () => {
  const opened = new OpenedParts();
  let here: CasePart;
  let there: CasePart;
  let database: PostgresDatabase;

  beforeAll(async () => {
    const settings = postgresSettings(await testDatabase());
    const open = () => openAllPostgresCases({ settings, registry: new Registry(), log }, opened);
    [here, there] = await Promise.all([open(), open()]);
    database = new PostgresDatabase({ settings, registry: new Registry(), log });
    opened.add(() => database.close());
  });
  afterAll(() => opened.close());

  const commit = (node: CasePart, ...alerts: Alert[]) => node.alerts.commit({ alerts, timeline: [] });
  const namedBy = (name: string) => ({ id: `rule_${name}`, name, description: "", tags: [] });
  const list = (node: CasePart, name: string, more = {}) =>
    node.alerts.list({ ruleName: [name], ...more }, PAGE, "created_at", true);
  const notificationOf = (alert: Alert): NewNotification => ({
    id: newNotificationId(),
    alertId: alert.id,
    channel: "slack",
    reason: "created",
    createdAt: 1,
  });

  test("a change by one is in the next answer of the other: lists, words, figures, look-ups", async () => {
    const rule = namedBy("shared.seen");
    let alert = newAlert({ rule, title: "Gate one" });
    await commit(here, alert);
    for (let round = 0; round < 20; round++) {
      const [writer, reader] = round % 2 === 0 ? [here, there] : [there, here];
      alert = nextAlert(alert, { title: `Gate round${round}`, eventCount: round, assignee: `p${round}@example.com` });
      expect(await commit(writer, alert)).toEqual([]);
      expect((await list(reader, rule.name)).items).toEqual([summaryOf(alert)]);
      expect((await list(reader, rule.name, { search: `round${round}` })).total).toBe(1);
      expect((await list(reader, rule.name, { assignee: [`P${round}@example.com`] })).total).toBe(1);
      expect(await reader.alerts.get(alert.id)).toEqual(alert);
    }
    await commit(there, nextAlert(alert, { status: "resolved", resolution: "benign", resolvedAt: 9000 }));
    expect(await here.alerts.resolutions(rule.name)).toMatchObject({ benign: 1 });
  });

  test("listeners hear of the other's commits within a second, and of their own once", async () => {
    const heard = { here: 0, there: 0, queued: 0 };
    const stops = [
      here.alerts.onChange(() => heard.here++),
      there.alerts.onChange(() => heard.there++),
      there.notifications.onQueued(() => heard.queued++),
    ];
    const alert = newAlert();
    await here.alerts.commit({ alerts: [alert], timeline: [], notifications: [notificationOf(alert)] });
    await expect.poll(() => heard, { timeout: 1000 }).toEqual({ here: 1, there: 1, queued: 1 });
    await commit(there, newAlert());
    await expect.poll(() => heard, { timeout: 1000 }).toEqual({ here: 2, there: 2, queued: 1 });
    for (const stop of stops) stop();
  });

  test("listeners hear of what was committed while the connection that receives notices was cut", async () => {
    let changes: Promise<number>[] = [];
    const stop = there.alerts.onChange(() => changes.push(there.alerts.lastChange()));
    for (let round = 0; round < 3; round++) {
      changes = [];
      await database.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT extract(epoch%')`,
      );
      await commit(here, newAlert());
      const last = await here.alerts.lastChange();
      await expect.poll(async () => Math.max(0, ...(await Promise.all(changes)))).toBe(last);
    }
    stop();
  });

  test("of two commits that conflict exactly one wins, and the other leaves nothing", async () => {
    const alert = newAlert();
    await commit(here, alert);
    let stored = alert;
    for (let round = 0; round < 10; round++) {
      const drafts = [here, there].map((node, i) => {
        const changed = nextAlert(stored, { title: `by ${i} in ${round}` });
        const entry = { id: newEntryId(), at: round, actor: `node ${i}`, kind: "reopened" } as const;
        const other = newAlert();
        const changes = {
          alerts: [other, changed],
          timeline: [{ alertId: alert.id, entry }],
          notifications: [notificationOf(changed)],
          detected: { upTo: `evt_${round}_${i}`, matches: [], seen: [] },
        };
        return { changed, other, changes, outcome: node.alerts.commit(changes) };
      });
      const outcomes = await Promise.all(drafts.map(({ outcome }) => outcome));
      expect(outcomes.filter((conflicts) => conflicts.length === 0)).toHaveLength(1);
      const [winner, loser] = outcomes[0]!.length === 0 ? drafts : drafts.toReversed();
      expect(outcomes).toContainEqual([alert.id]);
      stored = winner!.changed;
      expect(await here.alerts.getMany([alert.id, winner!.other.id, loser!.other.id])).toEqual([
        summaryOf(stored),
        summaryOf(winner!.other),
        null,
      ]);
      expect(await here.notifications.get(loser!.changes.notifications[0]!.id)).toBeUndefined();
      expect(await there.detection.position()).toBe(winner!.changes.detected.upTo);
      const { timeline } = (await there.alerts.withTimeline(alert.id))!;
      expect(timeline).toHaveLength(round + 1);
      expect(timeline.at(-1)!.actor).toBe(winner!.changes.timeline[0]!.entry.actor);
    }
  });

  test("a reader that follows the numbers of changes misses none, while both nodes commit", async () => {
    const start = await here.alerts.lastChange();
    const seen = new Set<string>();
    let last = start;
    let isDone = false;
    const follow = async () => {
      for (;;) {
        const wasDone = isDone;
        const changed = await there.alerts.changedSince(last, 7);
        for (const { change, alert } of changed) {
          expect(change).toBeGreaterThan(last);
          last = change;
          seen.add(alert.id);
        }
        if (wasDone && changed.length === 0) return;
      }
    };
    const following = follow();
    const rule = namedBy("shared.many");
    const write = async (node: CasePart) => {
      const ids: string[] = [];
      for (let round = 0; round < 25; round++) {
        const alerts = [newAlert({ rule }), newAlert({ rule })];
        expect(await commit(node, ...alerts)).toEqual([]);
        ids.push(...alerts.map(({ id }) => id));
      }
      return ids;
    };
    const ids = (await Promise.all([here, there, here, there].map(write))).flat();
    isDone = true;
    await following;
    expect(ids.filter((id) => !seen.has(id))).toEqual([]);
    expect(await here.alerts.lastChange()).toBe(start + ids.length);
    for (const node of [here, there]) {
      const found = await node.alerts.ids({ ruleName: [rule.name] }, 1000);
      expect(found.ids.toSorted()).toEqual(ids.toSorted());
    }
  });

  test("a removal by one reaches the index of the other, and so do entities that one fills in", async () => {
    const rule = namedBy("shared.removed");
    const old = { status: "resolved", resolution: "benign", resolvedAt: 10 } as const;
    const alerts = Array.from({ length: 250 }, (_, i) => newAlert({ rule, ...(i % 5 > 0 && old) }));
    for (let i = 0; i < alerts.length; i += 50) await commit(here, ...alerts.slice(i, i + 50));
    expect((await list(there, rule.name)).total).toBe(250);
    expect(await here.alerts.removeResolvedBefore(11, new AbortController().signal)).toBe(200);
    expect((await list(there, rule.name)).total).toBe(50);
    const after = newAlert({ rule, title: "Uses a slot again" });
    await commit(here, after);
    expect((await list(there, rule.name, { search: "uses again" })).items).toEqual([summaryOf(after)]);
    const entities = [{ kind: "door", value: "Shared gate", count: 1 }] as const;
    await here.alerts.fillEntities([{ id: after.id, entities }]);
    expect((await list(there, rule.name, { entity: [entities[0]] })).total).toBe(1);
  });

  test("a node that missed more removals than are remembered reads all alerts anew", async () => {
    const rule = namedBy("shared.forgotten");
    await commit(here, newAlert({ rule }), newAlert({ rule }));
    expect((await list(there, rule.name)).total).toBe(2);
    await database.run(
      `WITH gone AS (DELETE FROM alerts WHERE seq = (SELECT max(seq) FROM alerts) RETURNING seq)
       UPDATE alert_counters SET last_feed = last_feed + 1, forgotten_feed = last_feed + 1`,
    );
    expect((await list(there, rule.name)).total).toBe(1);
    await commit(here, newAlert({ rule }));
    expect((await list(there, rule.name)).total).toBe(2);
    expect((await list(here, rule.name)).total).toBe(2);
  });

  test("both take messages from one queue, and each notification is taken once", async () => {
    const alert = newAlert();
    const notifications = Array.from({ length: 40 }, () => notificationOf(alert));
    await here.alerts.commit({ alerts: [alert], timeline: [], notifications });
    const take = async (node: CasePart) => {
      const taken: string[] = [];
      for (;;) {
        const deliveryId = newDeliveryId();
        const message = await node.notifications.begin("slack", deliveryId, 3);
        if (message.length === 0) return taken;
        taken.push(...message.map(({ id }) => id));
        const entry = { id: newEntryId(), at: 1, actor: SYSTEM, kind: "reopened" } as const;
        await node.notifications.settle(deliveryId, { status: "sent", error: null }, 1, [{ alertId: alert.id, entry }]);
      }
    };
    const taken = (await Promise.all([here, there, here, there].map(take))).flat();
    expect(new Set(taken).size).toBe(taken.length);
    expect(taken).toEqual(expect.arrayContaining(notifications.map(({ id }) => id)));
    const { timeline } = (await here.alerts.withTimeline(alert.id))!;
    expect(timeline.length).toBeGreaterThanOrEqual(Math.ceil(40 / 3));
    const deliveryId = newDeliveryId();
    await here.alerts.commit({ alerts: [], timeline: [], notifications: [notificationOf(alert)] });
    await here.notifications.begin("slack", deliveryId, 1);
    const waiting = { status: "waiting", error: "busy", dueAt: 1, isRepeat: false } as const;
    await here.notifications.settle(deliveryId, waiting, 1, []);
    const again = await Promise.all([here, there].map((node) => node.notifications.beginAgain(deliveryId)));
    expect(again.map(({ length }) => length).toSorted()).toEqual([0, 1]);
  });

  test("a name belongs to one rule, and of two edits one is refused, whichever node makes them", async () => {
    for (let round = 0; round < 10; round++) {
      const rule = plainRule({ id: `rule_${round}_a`, name: `shared.rule_${round}`, conditions: [] });
      const put = await Promise.allSettled([here.rules.put(rule), there.rules.put({ ...rule, id: `rule_${round}_b` })]);
      expect(put.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect(put.find(({ status }) => status === "rejected")).toHaveProperty("reason.kind", "name_taken");
      const stored = (await there.rules.list()).find(({ name }) => name === rule.name);
      const edits = await Promise.allSettled(
        [here, there].map((node, i) => node.rules.put({ ...stored!, revision: 2, description: `${i}` })),
      );
      expect(edits.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect(edits.find(({ status }) => status === "rejected")).toHaveProperty("reason.kind", "changed");
    }
  });

  test("a detector whose lease is over commits nothing", async () => {
    const lease = (await here.leases.acquire("detector", "here", 600_000))!;
    const alert = newAlert();
    const detected = (upTo: string) => ({ upTo, matches: [], seen: [] });
    const commit = { alerts: [alert], timeline: [], detected: detected("evt_a"), fence: lease };
    expect(await here.alerts.commit(commit)).toEqual([]);
    await here.leases.release(lease);
    const next = (await there.leases.acquire("detector", "there", 600_000))!;
    const change = await there.alerts.lastChange();
    const late = here.alerts.commit({
      alerts: [nextAlert(alert, { title: "late" }), newAlert({ id: "alt_late" })],
      timeline: [],
      notifications: [notificationOf(alert)],
      detected: detected("evt_late"),
      fence: lease,
    });
    await expect(late).rejects.toBeInstanceOf(LeaseLost);
    expect(await there.alerts.getMany([alert.id, "alt_late"])).toEqual([summaryOf(alert), null]);
    expect([await there.alerts.lastChange(), await there.detection.position()]).toEqual([change, "evt_a"]);
    const later = { alerts: [], timeline: [], detected: detected("evt_b"), fence: next };
    expect(await there.alerts.commit(later)).toEqual([]);
    expect(await here.detection.position()).toBe("evt_b");
  });
});
