import { describe, expect, test } from "vitest";
import { timeOfId } from "../../lib/id.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ALWAYS } from "../../model/condition.ts";
import type { Arrival } from "../ports/event-engine.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { idsOf, type ContractContext } from "./contract.ts";

export function arrivalsContract({ store, reopen, clock, setClock, draft, append }: ContractContext): void {
  describe("arrivals", () => {
    const follow = async (after: string | null, count: number): Promise<Arrival[]> => {
      const stop = new AbortController();
      const found: Arrival[] = [];
      for await (const chunk of store().events.arrivals(after, stop.signal)) {
        found.push(...chunk);
        if (found.length >= count) stop.abort();
      }
      return found;
    };
    const ids = (arrivals: readonly Arrival[]) => arrivals.map(({ id }) => id);
    const places = (arrivals: readonly Arrival[]) => arrivals.map(({ place }) => place);

    test("come once each, at rising places, across days, after the given place, and continue with new events", async () => {
      const before = await store().events.lastArrival();
      const times = Array.from({ length: 1200 }, (_, i) => clock() - (i % 5) * DAY_MS);
      const stored = await append(...times.map((timestampMs) => draft({ timestampMs })));
      const arrived = await follow(before, stored.length);
      expect(ids(arrived).sort()).toEqual(stored.map(({ id }) => id).sort());
      expect(places(arrived)).toEqual([...new Set(places(arrived))].sort());
      const following = follow(arrived[0]!.place, stored.length);
      const [late] = await append(draft({ timestampMs: clock() - 3 * DAY_MS }));
      const rest = await following;
      expect(ids(rest)).toEqual([...ids(arrived.slice(1)), late!.id]);
      expect(await store().events.lastArrival()).toBe(rest.at(-1)!.place);
      expect(await store().events.lastKnownArrival()).toBe(rest.at(-1)!.place);
    });

    test("from the start are complete and in the same order after a restart", async () => {
      const upTo = await store().events.lastArrival();
      const total = await store().events.count();
      const before = await follow(null, total);
      await reopen();
      expect(await store().events.lastArrival()).toBe(upTo);
      const all = await follow(null, total);
      expect(all).toHaveLength(total);
      expect(places(all)).toEqual([...new Set(places(all))].sort());
      expect(ids(all)).toEqual(ids(before));
      expect(all.at(-1)!.place).toBe(upTo);
    });

    test("the last one before any time is found, on any day", async () => {
      const first = (await store().events.lastArrival())!;
      const usual = clock();
      // Places never go back, and earlier tests had a later clock().
      setClock(timeOfId(first));
      const ends: string[] = [];
      for (const daysAgo of [2, 0, 3, 0, 0, 1]) {
        setClock(clock() + 1000);
        await append(...Array.from({ length: 3 }, () => draft({ timestampMs: usual - daysAgo * DAY_MS })));
        ends.push((await store().events.lastArrival())!);
      }
      const now = clock();
      setClock(usual);
      const found = await Promise.all(ends.map((_, i) => store().events.lastArrivalBefore(now + 1 - i * 1000)));
      expect(found).toEqual(ends.toReversed());
      expect(await store().events.lastArrivalBefore(now - (ends.length - 1) * 1000)).toBe(first);
      expect(await store().events.lastArrivalBefore(0)).toBeNull();
    });

    test("an invalid place is refused", () => {
      expect(() => store().events.arrivals("no place", new AbortController().signal)).toThrow(QueryRefused);
    });
  });
}

export function eventRemovalContract({ store, reopen, clock, draft, append, page, search }: ContractContext): void {
  describe("retention", () => {
    test("removes whole days from every read, and places keep rising", async () => {
      const [last] = await append(draft({ timestampMs: clock() }));
      const lastPlace = await store().events.lastArrival();
      const cut = startOfDay(clock());
      const kept: string[] = [];
      for await (const chunk of store().events.scan({ condition: ALWAYS, fromMs: cut }, new AbortController().signal))
        kept.push(...idsOf(chunk));
      const before = await store().events.count();
      // With any time within a day, earlier days are removed and the day stays.
      const removed = await store().events.removeBefore(cut + 3_600_000);
      expect(removed.events).toBe(before - kept.length);
      expect(removed.days).toBeGreaterThan(0);
      expect(await store().events.count()).toBe(kept.length);
      expect((await search(ALWAYS, { limit: 0 })).total).toBe(kept.length);
      expect((await page({})).total).toBe(kept.length);
      await store().events.removeBefore(cut + 2 * DAY_MS);
      expect(await store().events.count()).toBe(0);
      expect(await store().events.get(last!.id)).toBeUndefined();
      await reopen();
      await append(draft());
      expect((await store().events.lastArrival())! > lastPlace!).toBe(true);
      expect((await page({})).total).toBe(1);
    });
  });
}
