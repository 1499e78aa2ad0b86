import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { Alert, AlertSummary } from "../../model/alert.ts";
import type { AlertEntity } from "../../model/alert-entity.ts";
import { STATUSES } from "../../model/alert-state.ts";
import type { Entity } from "../../model/entity.ts";
import { SEVERITIES } from "../../model/event.ts";
import type { Position } from "../../model/page.ts";
import type { AlertFilter, AlertSort } from "../ports/alert-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert, newAlertId, newEventId, nextAlert, summaryOf } from "./new-alert.ts";

// The part of the contract about lists of alerts: filters, words, order, pages and cursors.

export function alertListsContract({ store, reopen }: ContractContext): void {
  const commit = (...alerts: Alert[]) => store().alerts.commit({ alerts, timeline: [] });

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
        nextAlert(alert, {
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
        ...removedAlerts.map((alert) => nextAlert(alert, { status: "resolved", resolvedAt: 1, resolution: "benign" })),
      );
      expect(await store().alerts.removeResolvedBefore(2, new AbortController().signal)).toBe(removedAlerts.length);
      const kept = alerts.filter((alert, i) => !isGone(alert, i));
      alerts = kept;
      await agree();
      // Fewer than were removed, then more; the last one has the lowest of the new ids.
      const coming = kept
        .slice(0, 140)
        .map((alert, i) => newAlert({ ...alert, id: newAlertId(), version: 1, eventCount: i }));
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
      for (const item of items) expect(item).toEqual(summaryOf(known.get(item.id)!));
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
      await commit(nextAlert(alert, { assignee: "noah@example.net", tags: ["back-entrance"] }));
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
  });
}
