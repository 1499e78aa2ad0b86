import { describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import { SYSTEM, type Alert, type TimelineEntry } from "../../model/alert.ts";
import type { AlertEntity } from "../../model/alert-entity.ts";
import type { Store } from "../ports/store.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert, newEventId, nextAlert, summaryOf } from "./new-alert.ts";

// The part of the contract about alerts and their changes.

const newEntryId = idMaker("tln_");

export function alertsContract({ store, reopen }: ContractContext): void {
  const commit = (...alerts: Alert[]) => store().alerts.commit({ alerts, timeline: [] });

  describe("alerts", () => {
    test("a committed alert is read back unchanged, also after a restart", async () => {
      const alert = newAlert({
        title: 'quotes " and \\ and \u0000 and é 東京 😀 <script>alert(1)</script>',
        enrichment: JSON.parse('{"__proto__":{"polluted":true},"deep":[{"x":null}]}') as Alert["enrichment"],
      });
      expect(await commit(alert)).toEqual([]);
      expect(await store().alerts.get(alert.id)).toEqual(alert);
      await reopen();
      expect(await store().alerts.get(alert.id)).toEqual(alert);
      expect(await store().alerts.get("alt_0")).toBeUndefined();
      expect(await store().alerts.getMany(["alt_0", alert.id])).toEqual([null, summaryOf(alert)]);
    });

    test("of two changes to one version the first is stored, and the second is refused as a whole", async () => {
      const alert = newAlert();
      const other = newAlert();
      await commit(alert, other);
      const entry: TimelineEntry = { id: newEntryId(), at: 1, actor: "b", kind: "reopened" };
      expect(await commit(nextAlert(alert, { assignee: "a@example.com" }))).toEqual([]);
      const late = {
        alerts: [
          nextAlert(other, { title: "changed" }),
          nextAlert(alert, { assignee: "b@example.com" }),
          newAlert({ id: "alt_x" }),
        ],
        timeline: [{ alertId: other.id, entry }],
        detected: { upTo: "evt_never", matches: [], seen: [] },
      };
      expect(await store().alerts.commit(late)).toEqual([alert.id]);
      expect(await store().alerts.getMany([alert.id, other.id, "alt_x"])).toEqual([
        summaryOf(nextAlert(alert, { assignee: "a@example.com" })),
        summaryOf(other),
        null,
      ]);
      expect((await store().alerts.withTimeline(other.id))!.timeline).toEqual([]);
      expect(await store().detection.position()).not.toBe("evt_never");
      // An id in use cannot be that of a new alert.
      expect(await commit(newAlert({ id: other.id }))).toEqual([other.id]);
    });

    test("a change without events leaves them unchanged", async () => {
      const alert = newAlert();
      await commit(alert);
      const { relatedEvents, ...changed } = nextAlert(alert, { assignee: "a@example.com" });
      expect(await store().alerts.commit({ alerts: [changed], timeline: [] })).toEqual([]);
      expect(await store().alerts.get(alert.id)).toEqual({ ...changed, relatedEvents });
    });

    test("entities of older records are filled in once, are found, and survive a change that was made without them", async () => {
      const alert = newAlert({ relatedEvents: [{ id: newEventId(8), timestampMs: 1 }] });
      await commit(alert, newAlert({ entities: [] }));
      const lacking = await store().alerts.withoutEntities(1000);
      const { id, group, relatedEvents } = alert;
      expect(lacking.find((each) => each.id === id)).toMatchObject({ id, group, relatedEvents });
      expect(await store().alerts.withoutEntities(1)).toHaveLength(1);
      const change = await store().alerts.lastChange();
      const entities: AlertEntity[] = [{ kind: "door", value: "Filled gate", count: 3 }];
      await store().alerts.fillEntities([
        { id, entities, entitiesCut: true },
        { id: "alt_0", entities },
      ]);
      await store().alerts.fillEntities([{ id, entities: [] }]);
      const check = async (wanted: Alert) => {
        expect(await store().alerts.get(id)).toEqual(wanted);
        for (const filter of [{ entity: [entities[0]!] }, { search: "filled" }]) {
          const page = await store().alerts.list(filter, { mode: "page", page: 1, size: 5 }, "created_at", true);
          expect(page.items.map((item) => item.id)).toEqual([id]);
        }
        expect((await store().alerts.withoutEntities(1000)).some((each) => each.id === id)).toBe(false);
      };
      const filled: Alert = { ...alert, entities, entitiesCut: true };
      await check(filled);
      expect(await store().alerts.lastChange()).toBe(change);
      await commit(nextAlert(alert, { assignee: "a@example.com" }));
      await check({ ...filled, assignee: "a@example.com", version: 2 });
      await reopen();
      await check({ ...filled, assignee: "a@example.com", version: 2 });
    });

    test("of concurrent changes to one alert, exactly one succeeds", async () => {
      const alert = newAlert();
      await commit(alert);
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => commit(nextAlert(alert, { assignee: `p${i}@example.com` }))),
      );
      expect(outcomes.filter((conflicts) => conflicts.length === 0)).toHaveLength(1);
    });

    test("an alert and its timeline are consistent while changes are stored", async () => {
      const alert = newAlert();
      await commit(alert);
      let changed = alert;
      const reads: ReturnType<Store["alerts"]["withTimeline"]>[] = [];
      for (let count = 1; count <= 30; count++) {
        changed = nextAlert(changed, { eventCount: alert.eventCount + count });
        const entry: TimelineEntry = { id: newEntryId(), at: count, actor: SYSTEM, kind: "reopened" };
        const writing = store().alerts.commit({ alerts: [changed], timeline: [{ alertId: alert.id, entry }] });
        reads.push(store().alerts.withTimeline(alert.id), store().alerts.withTimeline(alert.id));
        await writing;
      }
      for (const read of await Promise.all(reads)) {
        expect(read!.timeline).toHaveLength(read!.alert.eventCount - alert.eventCount);
      }
    });

    test("a timeline keeps its order, and consecutive additions of events become one entry", async () => {
      const alert = newAlert();
      const happened = (at: number) => ({ id: newEntryId(), at, actor: SYSTEM });
      const add = (entry: TimelineEntry) =>
        store().alerts.commit({ alerts: [], timeline: [{ alertId: alert.id, entry }] });
      const entries: TimelineEntry[] = [
        { ...happened(1), kind: "created" },
        { ...happened(2), kind: "events_added", count: 3 },
        { ...happened(3), kind: "events_added", count: 4 },
        { ...happened(4), actor: "anna", kind: "acknowledged", assignee: null },
        { ...happened(5), kind: "events_added", count: 1 },
      ];
      const timeline = entries.slice(0, 2).map((entry) => ({ alertId: alert.id, entry }));
      await store().alerts.commit({ alerts: [alert], timeline });
      for (const entry of entries.slice(2)) await add(entry);
      expect((await store().alerts.withTimeline(alert.id))!.timeline).toEqual([
        entries[0],
        { ...entries[1], at: 3, count: 7 },
        entries[3],
        entries[4],
      ]);
      expect(await store().alerts.withTimeline("alt_0")).toBeUndefined();
    });

    test("a look-up near a time finds the unresolved alert with the newest event", async () => {
      const rule = { id: "rule_fold", name: "site.fold", description: "", tags: [] };
      const created = [10, 30, 20].map((lastEventAt) =>
        newAlert({ rule, foldKey: "k", firstEventAt: lastEventAt - 5, lastEventAt }),
      );
      await commit(...created, newAlert({ rule, foldKey: "other", firstEventAt: 0, lastEventAt: 90 }));
      const find = async (endsAfterMs: number, beginsBeforeMs: number, ruleId = rule.id, dedupKey = "k") =>
        (await store().alerts.unresolved([{ ruleId, dedupKey, endsAfterMs, beginsBeforeMs }]))[0]?.id;
      expect(await find(0, 100)).toBe(created[1]!.id);
      expect(await find(0, 25)).toBe(created[2]!.id);
      expect(await find(0, 15)).toBe(created[0]!.id);
      expect(await find(0, 5)).toBeUndefined();
      expect(await find(29, 100)).toBe(created[1]!.id);
      expect(await find(30, 100)).toBeUndefined();
      expect(await find(0, 100, rule.id, "none")).toBeUndefined();
      expect(await find(0, 100, "rule_none")).toBeUndefined();
      await commit(nextAlert(created[1]!, { status: "resolved", resolution: "benign", resolvedAt: 5 }));
      expect(await find(0, 100)).toBe(created[2]!.id);
      await commit(
        nextAlert(created[2]!, { status: "acknowledged" }),
        nextAlert(created[0]!, { firstEventAt: 2, lastEventAt: 70 }),
      );
      expect(await find(0, 100)).toBe(created[0]!.id);
      expect(await find(0, 5)).toBe(created[0]!.id);
    });

    test("unresolved alerts of a rule are counted up to the given limit", async () => {
      const rule = { id: "rule_many", name: "site.many", description: "", tags: [] };
      const created = Array.from({ length: 5 }, (_, i) => newAlert({ rule, foldKey: `k${i}` }));
      await commit(...created);
      const count = (countMax: number, besides = "none") =>
        store().alerts.countUnresolved([rule.id, "rule_none"], besides, countMax);
      expect(await count(10)).toEqual([5, 0]);
      expect(await count(10, "k2")).toEqual([4, 0]);
      expect(await count(3)).toEqual([3, 0]);
      await commit(
        nextAlert(created[0]!, { status: "resolved", resolution: "benign", resolvedAt: 5 }),
        nextAlert(created[1]!, { status: "acknowledged" }),
      );
      expect(await count(10)).toEqual([4, 0]);
    });

    test("the highest id is known, also after a restart", async () => {
      const alert = newAlert();
      await commit(alert);
      expect(await store().alerts.lastId()).toBe(alert.id);
      await reopen();
      expect(await store().alerts.lastId()).toBe(alert.id);
    });

    test("alerts changed after a given change are listed once, in their current state", async () => {
      const before = await store().alerts.lastChange();
      const [a, b, c] = [newAlert(), newAlert(), newAlert()];
      await commit(a, b);
      await commit(c);
      await commit(nextAlert(a, { title: "again" }));
      const changed = await store().alerts.changedSince(before, 10);
      expect(changed.map(({ alert }) => alert)).toEqual([b, c, nextAlert(a, { title: "again" })].map(summaryOf));
      const numbers = changed.map(({ change }) => change);
      expect(numbers).toEqual([...new Set(numbers)].sort((x, y) => x - y));
      expect(numbers.at(-1)).toBe(await store().alerts.lastChange());
      expect(await store().alerts.changedSince(numbers[0]!, 1)).toEqual([changed[1]]);
      expect(await store().alerts.changedSince(numbers.at(-1)!, 1)).toEqual([]);
      await reopen();
      expect(await store().alerts.changedSince(before, 10)).toEqual(changed);
      expect(await store().alerts.lastChange()).toBe(numbers.at(-1));
    });

    test("listeners are called after a commit that changed alerts is readable, until they are removed", async () => {
      const notified: Promise<Alert | undefined>[] = [];
      const alert = newAlert();
      const stop = store().alerts.onChange(() => notified.push(store().alerts.get(alert.id)));
      await commit(alert);
      await store().alerts.commit({ alerts: [], timeline: [] });
      await commit(alert);
      expect(await Promise.all(notified)).toEqual([alert]);
      stop();
      await commit(newAlert());
      expect(notified).toHaveLength(1);
    });
  });
}
