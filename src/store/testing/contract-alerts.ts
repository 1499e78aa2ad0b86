import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import { DAY_MS } from "../../lib/time.ts";
import { UNTOUCHED, SYSTEM, type Alert, type AlertSummary, type TimelineEntry } from "../../model/alert.ts";
import type { AlertEntity } from "../../model/alert-entity.ts";
import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import type { Entity } from "../../model/entity.ts";
import { SEVERITIES } from "../../model/event.ts";
import type { Position } from "../../model/page.ts";
import type { AlertFilter, AlertSort } from "../ports/alert-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { Store } from "../ports/store.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about alerts.

const newId = idMaker("alt_");
const newEntryId = idMaker("tln_");
const newEventId = (n: number) => `evt_${n.toString(16).padStart(32, "0")}`;

export function newAlert(more: Partial<Alert> = {}): Alert {
  return {
    ...UNTOUCHED,
    id: newId(),
    rule: { id: "rule_1", name: "site.one", description: "One.", tags: ["a"] },
    foldKey: '["192.0.2.1"]',
    group: { field: "raw.src_ip", value: "192.0.2.1" },
    title: "Failed logins from 192.0.2.1",
    description: "Somebody tries passwords.",
    severity: "high",
    source: "custom",
    eventCount: 5,
    firstEventAt: 1000,
    lastEventAt: 2000,
    createdAt: 3000,
    enrichment: { geo: { country: "AT" } },
    relatedEvents: [{ id: "evt_1", timestampMs: 2000 }],
    ...more,
  };
}

export function alertsContract({ store, reopen }: ContractContext): void {
  const summary = (alert: Alert): AlertSummary => {
    const { relatedEvents, ...rest } = alert;
    expect(relatedEvents).toBeDefined();
    return rest;
  };
  const commit = (...alerts: Alert[]) => store().alerts.commit({ alerts, timeline: [] });
  const next = (alert: Alert, more: Partial<Alert>): Alert => ({ ...alert, ...more, version: alert.version + 1 });

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
      expect(await store().alerts.getMany(["alt_0", alert.id])).toEqual([null, summary(alert)]);
    });

    test("of two changes to one version the first is stored, and the second is refused as a whole", async () => {
      const alert = newAlert();
      const other = newAlert();
      await commit(alert, other);
      const entry: TimelineEntry = { id: newEntryId(), at: 1, actor: "b", kind: "reopened" };
      expect(await commit(next(alert, { assignee: "a@example.com" }))).toEqual([]);
      const late = {
        alerts: [
          next(other, { title: "changed" }),
          next(alert, { assignee: "b@example.com" }),
          newAlert({ id: "alt_x" }),
        ],
        timeline: [{ alertId: other.id, entry }],
        detected: { upTo: "evt_never", matches: [], seen: [] },
      };
      expect(await store().alerts.commit(late)).toEqual([alert.id]);
      expect(await store().alerts.getMany([alert.id, other.id, "alt_x"])).toEqual([
        summary(next(alert, { assignee: "a@example.com" })),
        summary(other),
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
      const { relatedEvents, ...changed } = next(alert, { assignee: "a@example.com" });
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
      await commit(next(alert, { assignee: "a@example.com" }));
      await check({ ...filled, assignee: "a@example.com", version: 2 });
      await reopen();
      await check({ ...filled, assignee: "a@example.com", version: 2 });
    });

    test("of concurrent changes to one alert, exactly one succeeds", async () => {
      const alert = newAlert();
      await commit(alert);
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => commit(next(alert, { assignee: `p${i}@example.com` }))),
      );
      expect(outcomes.filter((conflicts) => conflicts.length === 0)).toHaveLength(1);
    });

    test("an alert and its timeline are consistent while changes are stored", async () => {
      const alert = newAlert();
      await commit(alert);
      let changed = alert;
      const reads: ReturnType<Store["alerts"]["withTimeline"]>[] = [];
      for (let count = 1; count <= 30; count++) {
        changed = next(changed, { eventCount: alert.eventCount + count });
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
      await commit(next(created[1]!, { status: "resolved", resolution: "benign", resolvedAt: 5 }));
      expect(await find(0, 100)).toBe(created[2]!.id);
      await commit(
        next(created[2]!, { status: "acknowledged" }),
        next(created[0]!, { firstEventAt: 2, lastEventAt: 70 }),
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
        next(created[0]!, { status: "resolved", resolution: "benign", resolvedAt: 5 }),
        next(created[1]!, { status: "acknowledged" }),
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
      await commit(next(a, { title: "again" }));
      const changed = await store().alerts.changedSince(before, 10);
      expect(changed.map(({ alert }) => alert)).toEqual([b, c, next(a, { title: "again" })].map(summary));
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

  describe("lists of alerts", () => {
    const names = ["list.one", "list.two", "list.three"];
    const people = ["anna@example.com", "Anna@Example.com", "ben.o'neil@example.org", null];
    const words = ["Failed", "logins", "from", "192.0.2.17", "camera-7", "Tür", "offline"];
    const entities: readonly Entity[] = [
      { kind: "address", value: "192.0.2.9" },
      { kind: "user", value: "Eva" },
      { kind: "user", value: "eva" },
      { kind: "door", value: "Loading dock" },
    ];
    const eventIds = ["evt_1", "evt_2", "evt_longer-than-a-compact-id", ...[3, 4, 5, 6].map(newEventId)];
    const filters = fc.record(
      {
        status: fc.subarray([...STATUSES], { minLength: 1 }),
        severity: fc.subarray([...SEVERITIES], { minLength: 1 }),
        source: fc.subarray(["custom", "platform_network", "platform_talk"], { minLength: 1 }),
        assignee: fc.subarray([...people, "nobody@example.com", "BEN.O'NEIL@example.org"], { minLength: 1 }),
        entity: fc.subarray(
          [
            ...entities,
            { value: "EVA" },
            { value: "192.0.2.9" },
            { kind: "door" as const, value: "eva" },
            { value: "nobody" },
          ],
          { minLength: 1, maxLength: 2 },
        ),
        tag: fc.subarray(["false-alarm", "vip", "unused"], { minLength: 1 }),
        eventId: fc.subarray([...eventIds, "evt_none"], { minLength: 1, maxLength: 3 }),
        time: fc.constantFrom("created" as const, "overlap" as const),
        fromMs: fc.integer({ min: 0, max: 40 }),
        toMs: fc.integer({ min: 0, max: 40 }),
        search: fc.subarray(words, { minLength: 1, maxLength: 2 }).map((some) => some.join(" ")),
      },
      { requiredKeys: [] },
    );
    const sorts = fc.constantFrom<AlertSort>("created_at", "last_event_at", "severity", "event_count");
    let alerts: Alert[] = [];
    const marksOf = (n: number): Alert["relatedEvents"] =>
      [...new Set([n % 7, n % 5, n % 3])].map((place) => ({ id: eventIds[place]!, timestampMs: place }));
    const namedBy = (n: number): AlertEntity[] =>
      entities.filter((_, place) => (n >> place) % 2 === 1).map((entity) => ({ ...entity, count: 1 }));

    /** Restricts the filter to alerts of this test: the store has others. */
    const only = (filter: AlertFilter): AlertFilter => ({ ruleName: names, ...filter });
    const ids = (items: readonly AlertSummary[]) => items.map(({ id }) => id);

    beforeAll(async () => {
      const pick = <Value>(values: readonly Value[], n: number) => values[n % values.length]!;
      alerts = fc
        .sample(fc.array(fc.nat({ max: 1_000_000 }), { minLength: 9, maxLength: 9 }), { numRuns: 300, seed: 3 })
        .map(([a, b, c, d, e, f, g, h, i]) =>
          newAlert({
            rule: { id: "rule_l", name: pick(names, a!), description: "", tags: [] },
            title: `${pick(words, b!)} ${pick(words, c!)}`,
            description: pick(words, d!),
            severity: pick(SEVERITIES, e!),
            source: pick(["custom", "platform_network"], f!),
            status: pick(STATUSES, g!),
            assignee: pick(people, h!),
            tags: pick([undefined, [], ["vip"], ["false-alarm", "vip"]], d!),
            createdAt: i! % 40,
            firstEventAt: (b! % 30) - (d! % 9),
            lastEventAt: b! % 30,
            eventCount: c! % 20,
            entities: namedBy(f!),
            relatedEvents: marksOf(g!),
          }),
        );
      // The order of arrival is neither that of ids nor that of times.
      const shuffled = alerts.map((alert, i) => ({ alert, place: (i * 7919) % 300 })).sort((a, b) => a.place - b.place);
      for (let i = 0; i < 300; i += 60) await commit(...shuffled.slice(i, i + 60).map(({ alert }) => alert));
      // Some of them change later.
      const changes = alerts.slice(0, 50).map((alert, i) =>
        next(alert, {
          status: pick(STATUSES, i),
          assignee: pick(people, i + 1),
          tags: ["vip"],
          eventCount: i,
          lastEventAt: i,
          entities: namedBy(i),
          relatedEvents: marksOf(i),
        }),
      );
      await commit(...changes);
      alerts = [...changes, ...alerts.slice(50)];
    });

    const textsOf = ({ title, description, rule, group, assignee, entities = [] }: Alert) =>
      [title, description, rule.name, group?.value ?? "", assignee ?? "", ...entities.map(({ value }) => value)]
        .join(" ")
        .toLowerCase();
    const isSame = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
    const isInRange = ({ time, fromMs = -1000, toMs = 1000 }: AlertFilter, alert: Alert) =>
      time === "overlap"
        ? alert.lastEventAt >= fromMs && alert.firstEventAt < toMs
        : alert.createdAt >= fromMs && alert.createdAt < toMs;
    const matches = (filter: AlertFilter, alert: Alert): boolean =>
      (filter.status?.includes(alert.status) ?? true) &&
      (filter.severity?.includes(alert.severity) ?? true) &&
      (filter.source?.includes(alert.source) ?? true) &&
      (filter.assignee === undefined ||
        filter.assignee.some((name) =>
          name === null || alert.assignee === null ? name === alert.assignee : isSame(name, alert.assignee),
        )) &&
      (filter.tag?.some((tag) => alert.tags?.includes(tag) ?? false) ?? true) &&
      (filter.entity?.some(({ kind, value }) =>
        alert.entities!.some((entity) => isSame(entity.value, value) && (kind ?? entity.kind) === entity.kind),
      ) ??
        true) &&
      (filter.eventId?.some((id) => alert.relatedEvents.some((event) => event.id === id)) ?? true) &&
      isInRange(filter, alert) &&
      (filter.search ?? "")
        .toLowerCase()
        .split(" ")
        .every((word) => textsOf(alert).split(" ").includes(word) || word === "");
    const keyOf = (alert: Alert, sort: AlertSort): number =>
      ({
        created_at: alert.createdAt,
        last_event_at: alert.lastEventAt,
        severity: -SEVERITIES.indexOf(alert.severity),
        event_count: alert.eventCount,
      })[sort];
    const inOrder = (list: readonly Alert[], sort: AlertSort, descending: boolean): string[] => {
      const rising = [...list].sort((a, b) => keyOf(a, sort) - keyOf(b, sort) || (a.id < b.id ? -1 : 1));
      return ids(descending ? rising.reverse() : rising);
    };

    const walk = async (
      filter: AlertFilter,
      sort: AlertSort,
      descending: boolean,
      size: number,
      between = async () => {},
    ) => {
      const walked: string[] = [];
      const totals = new Set<number>();
      let after: string | undefined;
      do {
        const position: Position = { mode: "cursor", after, size };
        const page = await store().alerts.list(only(filter), position, sort, descending);
        walked.push(...ids(page.items));
        totals.add(page.total);
        after = page.nextCursor ?? undefined;
        await between();
      } while (after !== undefined);
      return { walked, totals: [...totals] };
    };

    const agree = async () =>
      fc.assert(
        fc.asyncProperty(
          filters,
          sorts,
          fc.boolean(),
          fc.integer({ min: 1, max: 100 }),
          async (filter, sort, descending, size) => {
            const wanted = inOrder(
              alerts.filter((alert) => matches(filter, alert)),
              sort,
              descending,
            );
            const { walked, totals } = await walk(filter, sort, descending, Math.max(20, size));
            expect(walked).toEqual(wanted);
            expect(totals).toEqual([wanted.length]);
            const number = 1 + (size % 4);
            const page = await store().alerts.list(
              only(filter),
              { mode: "page", page: number, size },
              sort,
              descending,
            );
            expect(ids(page.items)).toEqual(wanted.slice((number - 1) * size, number * size));
            expect(page.total).toBe(wanted.length);
          },
        ),
        { numRuns: 150, seed: 5 },
      );

    test("any combination of filters, sort, page and cursor agrees with plain evaluation", agree);

    test("the same after a restart", async () => {
      await reopen();
      await agree();
    });

    test("the same after removals and additions, also after a restart", async () => {
      const isGone = (_: Alert, i: number) => i % 3 === 1;
      const removedAlerts = alerts.filter(isGone);
      await commit(
        ...removedAlerts.map((alert) => next(alert, { status: "resolved", resolvedAt: 1, resolution: "benign" })),
      );
      expect(await store().alerts.removeResolvedBefore(2, new AbortController().signal)).toBe(removedAlerts.length);
      const kept = alerts.filter((alert, i) => !isGone(alert, i));
      alerts = kept;
      await agree();
      // Fewer than were removed, then more; the last one has the lowest of the new ids.
      const coming = kept
        .slice(0, 140)
        .map((alert, i) => newAlert({ ...alert, id: newId(), version: 1, eventCount: i }));
      for (const some of [coming.slice(60, 100), coming.slice(100), coming.slice(0, 60).reverse()])
        await commit(...some);
      alerts = [...kept, ...coming];
      await agree();
      await reopen();
      await agree();
    });

    test("a list has whole alerts in their current state", async () => {
      const { items } = await store().alerts.list(only({}), { mode: "page", page: 1, size: 100 }, "created_at", true);
      const known = new Map(alerts.map((alert) => [alert.id, alert]));
      for (const item of items) expect(item).toEqual(summary(known.get(item.id)!));
    });

    test("words match by prefix, addresses and phrases as a whole, in every text", async () => {
      const alert = newAlert({
        rule: { id: "rule_s", name: "search.door_forced", description: "not searched: zebra", tags: ["zebra"] },
        title: "Türklinke forced open",
        description: "The back entrance, see /var/log/door.log",
        group: { field: "raw.door", value: "Warehouse-12" },
        assignee: "mia@example.net",
        entities: [
          { kind: "device", value: "02:00:5E:00:53:01", count: 2 },
          { kind: "user", value: "viktor", count: 1 },
        ],
      });
      await commit(alert);
      const found = async (search: string) =>
        ids(
          (
            await store().alerts.list(
              { search, ruleName: [alert.rule.name] },
              { mode: "page", page: 1, size: 5 },
              "created_at",
              true,
            )
          ).items,
        );
      for (const search of [
        "türkl",
        "OPEN forc",
        "door_forced",
        "forced",
        "warehouse",
        "12",
        "mia@example.net",
        "mia",
        "entrance back",
        '"forced open"',
        "t",
        "door.log",
        "02:00:5e:00:53:01",
        "viktor",
      ]) {
        expect(await found(search), search).toEqual([alert.id]);
      }
      for (const search of ["orced", "zebra", "open nothing", '"open forced"', "192.0.2.1", "high"]) {
        expect(await found(search), search).toEqual([]);
      }
      // Its former assignee no longer finds it.
      await commit(next(alert, { assignee: "noah@example.net", tags: ["back-entrance"] }));
      expect(await found("back-entr")).toEqual([alert.id]);
      expect(await found("mia")).toEqual([]);
      expect(await found("noah")).toEqual([alert.id]);
    });

    test("new alerts neither repeat nor skip a row of a cursor walk", async () => {
      const wanted = inOrder(alerts, "created_at", true);
      let n = 0;
      const { walked } = await walk({}, "created_at", true, 37, async () => {
        await commit(
          newAlert({ rule: { id: "rule_l", name: names[0]!, description: "", tags: [] }, createdAt: 1000 + n++ }),
        );
      });
      expect(walked).toEqual(wanted);
    });

    test("the ids of matching alerts are the newest first, with the number of all", async () => {
      await fc.assert(
        fc.asyncProperty(filters, fc.integer({ min: 1, max: 400 }), async (filter, limit) => {
          const { items } = await store().alerts.list(
            only(filter),
            { mode: "page", page: 1, size: 1000 },
            "created_at",
            true,
          );
          const found = await store().alerts.ids(only(filter), limit);
          expect(found).toEqual({ total: items.length, ids: ids(items).slice(0, limit) });
        }),
        { numRuns: 40 },
      );
    });

    test("an unknown cursor and a search without a word are refused with the field's name", async () => {
      const unknown = store().alerts.list({}, { mode: "cursor", after: "alt_0", size: 5 }, "created_at", true);
      await expect(unknown).rejects.toThrow(QueryRefused);
      await expect(unknown).rejects.toHaveProperty("field", "after");
      const empty = store().alerts.list({ search: "***" }, { mode: "page", page: 1, size: 5 }, "created_at", true);
      await expect(empty).rejects.toHaveProperty("field", "search");
    });

    test("totals cover the alerts created in the range", async () => {
      const base = 50 * DAY_MS;
      const at = (createdAt: number, more: Partial<Alert>) => newAlert({ createdAt: base + createdAt, ...more });
      await commit(
        at(0, { severity: "info" }),
        at(10, { status: "acknowledged", firstAcknowledgedAt: base + 40 }),
        at(20, { status: "resolved", firstAcknowledgedAt: base + 30, resolvedAt: base + 120, resolution: "benign" }),
        at(30, { status: "resolved", resolvedAt: base + 40, resolution: "duplicate", severity: "critical" }),
        at(40, {}),
      );
      expect(await store().alerts.totals({ fromMs: base, toMs: base + 40 })).toEqual({
        total: 4,
        byStatus: { open: 1, acknowledged: 1, resolved: 2 },
        bySeverity: { critical: 1, high: 2, medium: 0, low: 0, info: 1 },
        acknowledgeMs: 20,
        resolveMs: 55,
      });
      expect(await store().alerts.totals({ fromMs: base + 41, toMs: base + 40 })).toEqual({
        total: 0,
        byStatus: { open: 0, acknowledged: 0, resolved: 0 },
        bySeverity: { critical: 0, high: 0, medium: 0, low: 0, info: 0 },
        acknowledgeMs: null,
        resolveMs: null,
      });
    });

    test("outcomes of several rules are counted from their times on", async () => {
      const rule = (name: string) => ({ id: `rule_${name}`, name, description: "", tags: [] });
      const [noisy, quiet] = [rule("site.noisy"), rule("site.quiet")];
      const base = 50 * DAY_MS;
      const at = (ms: number, more: Partial<Alert>) => newAlert({ createdAt: base + ms, ...more });
      const resolved = (i: number) =>
        ({ status: "resolved", resolvedAt: base * 2, resolution: RESOLUTIONS[i]! }) as const;
      await commit(
        at(-1, { rule: noisy, ...resolved(1) }),
        at(0, { rule: noisy, ...resolved(1) }),
        at(5, { rule: noisy, ...resolved(0) }),
        at(10, { rule: noisy, ...resolved(1) }),
        at(11, { rule: noisy }),
        at(10, { rule: quiet, ...resolved(3) }),
      );
      const since = { createdMs: base + 10, resolvedMs: base };
      const none = { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 };
      expect(await store().alerts.outcomes([quiet.name, "site.unheard", noisy.name], since)).toEqual([
        { created: 1, resolutions: { ...none, duplicate: 1 } },
        { created: 0, resolutions: none },
        { created: 2, resolutions: { ...none, true_positive: 1, false_positive: 2 } },
      ]);
      expect(await store().alerts.outcomes([], since)).toEqual([]);
    });

    test("resolutions are counted by the name of the rule", async () => {
      const rule = { id: "rule_r", name: "site.resolved", description: "", tags: [] };
      const resolved = [0, 1, 1, 3].map((i) =>
        newAlert({ rule, status: "resolved", resolvedAt: 4000, resolution: RESOLUTIONS[i]! }),
      );
      await commit(...resolved, newAlert({ rule }));
      const counts = { true_positive: 1, false_positive: 2, benign: 0, duplicate: 1 };
      expect(await store().alerts.resolutions(rule.name)).toEqual(counts);
      await commit(next(resolved[0]!, { status: "open", resolution: null, resolvedAt: null }));
      expect(await store().alerts.resolutions(rule.name)).toEqual({ ...counts, true_positive: 0 });
      expect(await store().alerts.resolutions("site.never")).toEqual({
        true_positive: 0,
        false_positive: 0,
        benign: 0,
        duplicate: 0,
      });
    });
  });
}
