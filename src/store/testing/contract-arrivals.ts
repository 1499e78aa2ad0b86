import { describe, expect, test } from "vitest";
import { timeOfId } from "../../lib/id.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ALWAYS } from "../../model/condition.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { idsOf, type ContractContext } from "./contract.ts";

export function arrivalsContract({ store, reopen, clock, setClock, draft, append }: ContractContext): void {
  describe("arrivals", () => {
    const follow = async (after: string | null, count: number): Promise<string[]> => {
      const stop = new AbortController();
      const found: string[] = [];
      for await (const chunk of store().events.arrivals(after, stop.signal)) {
        found.push(...chunk.map(({ id }) => id));
        if (found.length >= count) stop.abort();
      }
      return found;
    };

    test("come in the order of their ids, across days, after the given one, and continue with new events", async () => {
      const before = await store().events.lastArrival();
      const times = Array.from({ length: 1200 }, (_, i) => clock() - (i % 5) * DAY_MS);
      const [first, ...rest] = await append(...times.map((timestampMs) => draft({ timestampMs })));
      const following = follow(first!.id, rest.length + 1);
      const [late] = await append(draft({ timestampMs: clock() - 3 * DAY_MS }));
      const expected = [...rest.map(({ id }) => id), late!.id];
      expect(await following).toEqual(expected);
      expect(await store().events.lastArrival()).toBe(late!.id);
      expect((await follow(before, 1))[0]).toBe(first!.id);
    });

    test("from the start are complete and in order after a restart", async () => {
      const upTo = await store().events.lastArrival();
      const total = await store().events.count();
      await reopen();
      expect(await store().events.lastArrival()).toBe(upTo);
      const all = await follow(null, total);
      expect(all).toHaveLength(total);
      expect(all).toEqual([...all].sort());
      expect(all.at(-1)).toBe(upTo);
    });

    test("the last one before any time is found, on any day", async () => {
      const first = (await store().events.lastArrival())!;
      const usual = clock();
      // Ids never go back, and earlier tests had a later clock().
      setClock(timeOfId(first));
      const ids: string[] = [];
      for (const daysAgo of [2, 0, 3, 0, 0, 1]) {
        setClock(clock() + 1000);
        const some = Array.from({ length: 3 }, () => draft({ timestampMs: usual - daysAgo * DAY_MS }));
        ids.push((await append(...some)).at(-1)!.id);
      }
      const now = clock();
      setClock(usual);
      const found = await Promise.all(ids.map((_, i) => store().events.lastArrivalBefore(now + 1 - i * 1000)));
      expect(found).toEqual(ids.toReversed());
      expect(await store().events.lastArrivalBefore(now - (ids.length - 1) * 1000)).toBe(first);
      expect(await store().events.lastArrivalBefore(0)).toBeNull();
    });

    test("an invalid id is refused", () => {
      expect(() => store().events.arrivals("evt_x", new AbortController().signal)).toThrow(QueryRefused);
    });
  });
}

export function eventRemovalContract({ store, reopen, clock, draft, append, page, search }: ContractContext): void {
  describe("retention", () => {
    test("removes whole days from every read, and ids keep rising", async () => {
      const [last] = await append(draft({ timestampMs: clock() }));
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
      const [next] = await append(draft());
      expect(next!.id > last!.id).toBe(true);
      expect((await page({})).total).toBe(1);
    });
  });
}
