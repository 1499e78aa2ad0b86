import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { timeOfId } from "../../lib/id.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ALWAYS, type Condition } from "../../model/condition.ts";
import type { Event, EventDraft, JsonObject } from "../../model/event.ts";
import type { ExportJob } from "../../model/export.ts";
import type { ApiKey } from "../../model/key.ts";
import type { Position } from "../../model/page.ts";
import type { SearchQuery } from "../../model/query.ts";
import { amendContract } from "./contract-amend.ts";
import { casesContract, newAlert } from "./contract-cases.ts";
import { notificationsContract } from "./contract-notifications.ts";
import { flowsContract } from "./contract-flows.ts";
import { questionsContract } from "./contract-questions.ts";
import { removalContract } from "./contract-removal.ts";
import { searchContract } from "./contract-search.ts";
import type { EventFilter } from "../ports/event-engine.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { Store } from "../ports/store.ts";
import { searchFault } from "../search/text-search.ts";

// What every store must do, whatever it is made of. A backend passes this suite as it stands.

export interface StoreUnderTest {
  readonly store: Store;
  /** Closes it and opens the same data again, as a new process would. */
  reopen(): Promise<Store>;
  /** Closes it for good. */
  end(): Promise<void>;
}

/** `open` makes an empty store whose platform word is `platform` and whose clock is the given one. */
export function storeContract(name: string, open: (now: () => number) => Promise<StoreUnderTest>): void {
  describe(`${name} keeps the store's promises`, () => {
    const start = startOfDay(Date.UTC(2026, 5, 15)) + 12 * 3_600_000;
    let clock = start;
    let opened: StoreUnderTest;
    let store: Store;

    beforeAll(async () => {
      opened = await open(() => clock);
      store = opened.store;
    });
    afterAll(() => opened.end());

    const draft = (more: Partial<EventDraft> = {}): EventDraft => ({
      type: "login_failure",
      source: "custom",
      severity: "info",
      class: "security",
      timestampMs: clock,
      raw: {},
      enrichment: {},
      ...more,
    });
    const append = async (...list: EventDraft[]): Promise<Event[]> => {
      const stored = await store.events.append(list.map((item) => ({ draft: item })));
      return stored.map(({ text }) => parseExact(text) as Event);
    };
    const page = (filter: EventFilter, number = 1, size = 100) =>
      store.events.list(filter, { mode: "page", page: number, size });
    const ids = (items: readonly string[]) => items.map((text) => (JSON.parse(text) as Event).id);
    const search = (condition: Condition, more: Partial<SearchQuery> = {}) =>
      store.events.search({ condition, sort: [], limit: 1000, aggs: [], ...more });

    describe("events", () => {
      test("what is appended is read back as it is, by id and in lists, at once", async () => {
        const raw = {
          text: 'quotes " and \\ and \n and \u0000 and é 東京 😀',
          ["__proto__"]: { polluted: true },
          numbers: [0, -1.5, 9007199254740991, 9007199254740993n, -(2n ** 64n) - 1n, 10n ** 300n],
          nested: { deep: [{ x: null }, [], {}] },
          long: "x".repeat(100_000),
        };
        const [event] = await append(
          draft({ raw: parseExact(JSON.stringify(raw)) as JsonObject, enrichment: { geo: { country: "AT" } } }),
        );
        expect(event).toEqual({
          id: expect.stringMatching(/^evt_[0-9a-z]{26,32}$/),
          type: "login_failure",
          source: "custom",
          class: "security",
          severity: "info",
          timestamp: new Date(clock).toISOString(),
          raw: parseExact(JSON.stringify(raw)) as JsonObject,
          enrichment: { geo: { country: "AT" } },
        });
        expect(parseExact((await store.events.get(event!.id))!)).toEqual(event);
        expect(ids((await page({})).items)).toContain(event!.id);
      });

      test("events of two days are there once, in every read, whatever else of one of the days is stored meanwhile", async () => {
        const type = "day_change";
        const midnight = startOfDay(clock) - 20 * DAY_MS;
        const times = [
          ...Array.from({ length: 500 }, () => midnight - 1),
          ...Array.from({ length: 500 }, () => midnight + 1),
        ];
        const ofTwoDays = () => append(...times.map((timestampMs) => draft({ type, timestampMs })));
        const ofOneDay = () => append(...times.map(() => draft({ type, timestampMs: midnight + 2 })));
        const stored = (await Promise.all([ofTwoDays(), ofOneDay(), ofTwoDays(), ofOneDay()])).flat();
        expect((await page({ type })).total).toBe(stored.length);
        const condition: Condition = {
          kind: "test",
          field: "type",
          operator: "equals",
          value: type,
          ignoreCase: false,
        };
        expect((await search(condition, { limit: 0 })).total).toBe(stored.length);
        const scanned: string[] = [];
        for await (const chunk of store.events.scan({ condition }, new AbortController().signal))
          scanned.push(...ids(chunk));
        expect(scanned.sort()).toEqual(stored.map(({ id }) => id).sort());
      });

      test("ids rise in the order of arrival, also within a call and when the clock goes back", async () => {
        const first = await append(draft(), draft(), draft());
        clock -= 60_000;
        const second = await append(draft());
        clock += 60_000;
        const all = [...first, ...second].map(({ id }) => id);
        expect(all).toEqual([...all].sort());
      });

      test("an id that no event has is not found", async () => {
        expect(await store.events.get("evt_0")).toBeUndefined();
        const [event] = await append(draft());
        const other = event!.id.slice(0, -1) + (event!.id.endsWith("0") ? "1" : "0");
        expect(await store.events.get(other)).toBeUndefined();
      });

      test("a token finds the event it came with for a day, and not longer", async () => {
        const [stored] = await store.events.append([{ draft: draft(), idempotencyToken: "token-1" }]);
        expect(await store.events.findByToken("token-1")).toEqual(stored);
        expect(await store.events.findByToken("token-2")).toBeUndefined();
        const places = [0, 9, 10, 9999];
        const batch = await store.events.append(
          places.map((place) => ({
            draft: draft({ timestampMs: clock - (place % 3) * DAY_MS }),
            idempotencyToken: `token-1 ${place}`,
          })),
        );
        const found = new Map(places.map((place, i) => [place, batch[i]!.id]));
        expect(await store.events.findByTokens("token-1")).toEqual(found);
        expect(await store.events.findByTokens("token-")).toEqual(new Map());
        expect(await store.events.findByToken("token-1")).toEqual(stored);
        clock += DAY_MS + 1000;
        await append(draft());
        expect(await store.events.findByToken("token-1")).toBeUndefined();
        expect(await store.events.findByTokens("token-1")).toEqual(new Map());
        clock -= DAY_MS + 1000;
      });

      test("writers and readers at once: every event is seen by the reads after its append", async () => {
        const type = "at-once";
        let seen = 0;
        await Promise.all(
          Array.from({ length: 8 }, async (_, writer) => {
            for (let i = 0; i < 10; i++) {
              const [event] = await append(draft({ type, raw: { writer, i, word: `only${writer}x${i}` } }));
              const [listed, filtered, words, found] = await Promise.all([
                page({}, 1, 100),
                page({ type }, 1, 100),
                page({ search: `only${writer}x${i}` }),
                search({
                  kind: "test",
                  field: "raw.word",
                  operator: "equals",
                  value: `only${writer}x${i}`,
                  ignoreCase: false,
                }),
              ]);
              expect(listed.total).toBeGreaterThan(seen);
              expect(ids(filtered.items)).toContain(event!.id);
              expect(ids(words.items)).toEqual([event!.id]);
              expect(ids(found.items)).toEqual([event!.id]);
              seen++;
            }
          }),
        );
        expect(seen).toBe(80);
        expect((await page({ type })).total).toBe(80);
      });
    });

    describe("lists", () => {
      const type = "listed";
      let events: Event[] = [];

      beforeAll(async () => {
        // Three days, times that go back and forth and that several events share.
        const times = Array.from({ length: 250 }, (_, i) => clock - ((i * 7919) % 250) * 1_000_000 + (i % 3) * 17);
        const batch = times.map((timestampMs, i) =>
          draft({
            type,
            timestampMs,
            severity: (["critical", "high", "medium", "low", "info"] as const)[i % 5]!,
            class: (["security", "network", "audit"] as const)[i % 3]!,
            source: i % 2 === 0 ? "custom" : "platform_network",
            raw: { n: i, text: i % 10 === 0 ? "needle in the hay" : "hay" },
          }),
        );
        events = [...(await append(...batch.slice(0, 100))), ...(await append(...batch.slice(100)))];
        events.sort((a, b) => (a.timestamp < b.timestamp || (a.timestamp === b.timestamp && a.id < b.id) ? 1 : -1));
      });

      const cases: [string, EventFilter, (event: Event) => boolean][] = [
        ["type", {}, () => true],
        ["severity", { severity: "high" }, (event) => event.severity === "high"],
        ["class", { class: "audit" }, (event) => event.class === "audit"],
        ["source", { source: "platform_network" }, (event) => event.source === "platform_network"],
        [
          "several filters",
          { source: "custom", severity: "low" },
          (event) => event.source === "custom" && event.severity === "low",
        ],
        ["words", { search: "needle" }, (event) => event.raw.text !== "hay"],
        [
          "words and a filter",
          { search: "needl", severity: "critical" },
          (event) => event.raw.text !== "hay" && event.severity === "critical",
        ],
        ["a phrase", { search: '"needle in"' }, (event) => event.raw.text !== "hay"],
        [
          "a range of time",
          { fromMs: Date.UTC(2026, 5, 14, 3), toMs: Date.UTC(2026, 5, 15, 4, 30) },
          (event) => event.timestamp >= "2026-06-14T03:00:00.000Z" && event.timestamp < "2026-06-15T04:30:00.000Z",
        ],
        [
          "words in a range of time",
          { search: "hay", fromMs: Date.UTC(2026, 5, 14, 3), toMs: Date.UTC(2026, 5, 15, 4, 30) },
          (event) => event.timestamp >= "2026-06-14T03:00:00.000Z" && event.timestamp < "2026-06-15T04:30:00.000Z",
        ],
        ["nothing at all", { severity: "info", class: "network", search: "nowhere" }, () => false],
      ];

      test.each(cases)("by %s: newest first, exact totals, pages and cursors agree", async (_, filter, matches) => {
        const wanted = events.filter(matches).map(({ id }) => id);
        const byPage: string[] = [];
        for (let number = 1; ; number++) {
          const { items, total } = await page({ type, ...filter }, number, 17);
          expect(total).toBe(wanted.length);
          if (items.length === 0) break;
          byPage.push(...ids(items));
        }
        expect(byPage).toEqual(wanted);
        const byCursor: string[] = [];
        let after: string | undefined;
        do {
          const position: Position = { mode: "cursor", after, size: 17 };
          const { items, total, nextCursor } = await store.events.list({ type, ...filter }, position);
          expect(total).toBe(wanted.length);
          byCursor.push(...ids(items));
          after = nextCursor ?? undefined;
          if (after !== undefined) expect(after).toBe(byCursor.at(-1));
        } while (after !== undefined);
        expect(byCursor).toEqual(wanted);
      });

      test("without a filter the walk by pages and by cursor sees every event once", async () => {
        const total = await store.events.count();
        const walked: string[] = [];
        let after: string | undefined;
        do {
          const { items, nextCursor } = await store.events.list({}, { mode: "cursor", after, size: 100 });
          walked.push(...ids(items));
          after = nextCursor ?? undefined;
        } while (after !== undefined);
        expect(walked.length).toBe(total);
        expect(new Set(walked).size).toBe(total);
        const paged: string[] = [];
        for (let number = 1; number <= Math.ceil(total / 100); number++)
          paged.push(...ids((await page({}, number)).items));
        expect(paged).toEqual(walked);
        const range = { fromMs: Date.UTC(2026, 5, 14, 3), toMs: Date.UTC(2026, 5, 15, 4, 30) };
        const inRange: string[] = [];
        for (let number = 1; number <= 10; number++) inRange.push(...ids((await page(range, number, 50)).items));
        expect(inRange.length).toBe((await page(range)).total);
        expect(new Set(inRange).size).toBe(inRange.length);
      });

      test("rows that come in between neither repeat nor skip a row of a cursor walk", async () => {
        const wanted = events.map(({ id }) => id);
        const walked: string[] = [];
        let after: string | undefined;
        do {
          const { items, nextCursor } = await store.events.list({ type }, { mode: "cursor", after, size: 50 });
          walked.push(...ids(items));
          after = nextCursor ?? undefined;
          clock += 1000;
          await append(draft({ type: "listed", timestampMs: clock, raw: { text: "late" } }));
        } while (after !== undefined);
        expect(walked).toEqual(wanted);
      });

      test("a cursor that no event has, and a search without a word, are refused by name", async () => {
        const unknown = store.events.list({}, { mode: "cursor", after: "evt_0123", size: 5 });
        await expect(unknown).rejects.toThrow(QueryRefused);
        await expect(unknown).rejects.toHaveProperty("field", "after");
        const empty = page({ search: "***" });
        await expect(empty).rejects.toHaveProperty("field", "search");
        expect(searchFault("***")).toEqual(expect.any(String));
        expect(searchFault("needle")).toBeUndefined();
      });
    });

    questionsContract({ store: () => store, clock: () => clock, draft, append });

    searchContract({ store: () => store, draft, append });

    amendContract({
      store: () => store,
      reopen: async () => (store = await opened.reopen()),
      clock: () => clock,
      draft,
      append,
    });

    describe("keys and exports", () => {
      const key: ApiKey = {
        id: "key_1",
        name: "ci",
        scopes: ["events:read", "keys:manage"],
        plan: "pro",
        createdAt: 1,
        expiresAt: null,
        revokedAt: null,
        secretHash: new Uint8Array([1, 2, 3]),
        previous: [],
      };

      test("a key is found as it was put, and as it was changed", async () => {
        expect(await store.keys.find("key_1")).toBeUndefined();
        await store.keys.put(key);
        expect(await store.keys.find("key_1")).toEqual(key);
        const previous = [
          { hash: new Uint8Array([9]), until: 7 },
          { hash: new Uint8Array([8]), until: 9 },
        ];
        const revoked = { ...key, revokedAt: 5, previous };
        await store.keys.put(revoked);
        expect(await store.keys.find("key_1")).toEqual(revoked);
        expect(await store.keys.list()).toEqual([revoked]);
        const renamed = await store.keys.change("key_1", (now) => ({ ...now, name: "renamed", previous: [] }));
        expect(renamed).toEqual({ ...revoked, name: "renamed", previous: [] });
        expect(await store.keys.find("key_1")).toEqual(renamed);
      });

      test("a change of a key that is not there, or that is given up, changes nothing", async () => {
        const before = await store.keys.list();
        expect(await store.keys.change("key_0", (now) => now)).toBeUndefined();
        const givenUp = store.keys.change("key_1", () => {
          throw new Error("given up");
        });
        await expect(givenUp).rejects.toThrow("given up");
        expect(await store.keys.list()).toEqual(before);
      });

      test("a key that is removed is gone, with what it has used, and the others stay", async () => {
        const before = await store.keys.list();
        const previous = [{ hash: new Uint8Array([9]), until: 7 }];
        await store.keys.put({ ...key, id: "key_2", previous });
        await store.keys.saveUsage([
          { keyId: "key_2", lastUsedAt: 1, day: 0, dayCount: 1, minuteEndsAt: 0, minuteCount: 0 },
        ]);
        expect(await store.keys.find("key_2")).toBeDefined();
        expect(await store.keys.remove(["key_2", "key_none"])).toEqual(["key_2", "key_none"]);
        expect(await store.keys.find("key_2")).toBeUndefined();
        expect(await store.keys.list()).toEqual(before);
        expect((await store.keys.usage()).filter(({ keyId }) => keyId === "key_2")).toEqual([]);
        await store.keys.put({ ...key, id: "key_2" });
        expect((await store.keys.find("key_2"))!.previous).toEqual([]);
        await store.keys.remove(["key_2"]);
      });

      test("usage and exports are kept over a restart", async () => {
        const job: ExportJob = {
          id: "exp_1",
          status: "running",
          format: "csv",
          question: { condition: ALWAYS, fields: null, fromMs: 0, toMs: 1 },
          rowCount: null,
          sizeBytes: null,
          owner: "key_1",
          createdAt: 1,
          completedAt: null,
          expiresAt: 2,
          error: null,
        };
        await store.exports.put(job);
        await store.keys.saveUsage([
          { keyId: "key_1", lastUsedAt: 3, day: 0, dayCount: 4, minuteEndsAt: 5, minuteCount: 6 },
        ]);
        const before = await store.events.count();
        const newest = (await page({}, 1, 3)).items;
        store = await opened.reopen();
        expect(await store.exports.get("exp_1")).toEqual(job);
        expect(await store.exports.list()).toEqual([job]);
        expect(await store.keys.usage()).toEqual([
          { keyId: "key_1", lastUsedAt: 3, day: 0, dayCount: 4, minuteEndsAt: 5, minuteCount: 6 },
        ]);
        await store.exports.remove("exp_1");
        expect(await store.exports.get("exp_1")).toBeUndefined();
        expect(await store.events.count()).toBe(before);
        expect((await page({}, 1, 3)).items).toEqual(newest);
        expect((await search(ALWAYS, { limit: 0 })).total).toBe(before);
      });
    });

    describe("arrivals", () => {
      const follow = async (after: string | null, count: number): Promise<string[]> => {
        const stop = new AbortController();
        const found: string[] = [];
        for await (const chunk of store.events.arrivals(after, stop.signal)) {
          found.push(...chunk.map(({ id }) => id));
          if (found.length >= count) stop.abort();
        }
        return found;
      };

      test("come in the order of their ids, across days, after the one that is named, and go on with what comes", async () => {
        const before = await store.events.lastArrival();
        const times = Array.from({ length: 1200 }, (_, i) => clock - (i % 5) * DAY_MS);
        const [first, ...rest] = await append(...times.map((timestampMs) => draft({ timestampMs })));
        const following = follow(first!.id, rest.length + 1);
        const [late] = await append(draft({ timestampMs: clock - 3 * DAY_MS }));
        const expected = [...rest.map(({ id }) => id), late!.id];
        expect(await following).toEqual(expected);
        expect(await store.events.lastArrival()).toBe(late!.id);
        expect((await follow(before, 1))[0]).toBe(first!.id);
      });

      test("are the same from the start, after a reopening, as they came in", async () => {
        const upTo = await store.events.lastArrival();
        const total = await store.events.count();
        store = await opened.reopen();
        expect(await store.events.lastArrival()).toBe(upTo);
        const all = await follow(null, total);
        expect(all).toHaveLength(total);
        expect(all).toEqual([...all].sort());
        expect(all.at(-1)).toBe(upTo);
      });

      test("the last one before any time is found, on whichever day it lies", async () => {
        const first = (await store.events.lastArrival())!;
        const usual = clock;
        // Ids never go back: earlier tests had a later clock.
        clock = timeOfId(first);
        const ids: string[] = [];
        for (const daysAgo of [2, 0, 3, 0, 0, 1]) {
          clock += 1000;
          const some = Array.from({ length: 3 }, () => draft({ timestampMs: usual - daysAgo * DAY_MS }));
          ids.push((await append(...some)).at(-1)!.id);
        }
        const now = clock;
        clock = usual;
        const found = await Promise.all(ids.map((_, i) => store.events.lastArrivalBefore(now + 1 - i * 1000)));
        expect(found).toEqual(ids.toReversed());
        expect(await store.events.lastArrivalBefore(now - (ids.length - 1) * 1000)).toBe(first);
        expect(await store.events.lastArrivalBefore(0)).toBeNull();
      });

      test("an id that no event can have is refused", () => {
        expect(() => store.events.arrivals("evt_x", new AbortController().signal)).toThrow(QueryRefused);
      });
    });

    describe("retention", () => {
      test("removes whole days, from every read, and ids go on rising", async () => {
        const [last] = await append(draft({ timestampMs: clock }));
        const cut = startOfDay(clock);
        const kept: string[] = [];
        for await (const chunk of store.events.scan({ condition: ALWAYS, fromMs: cut }, new AbortController().signal))
          kept.push(...ids(chunk));
        const before = await store.events.count();
        // Anywhere within the day, what lies before it goes and the day stays.
        const removed = await store.events.removeBefore(cut + 3_600_000);
        expect(removed.events).toBe(before - kept.length);
        expect(removed.days).toBeGreaterThan(0);
        expect(await store.events.count()).toBe(kept.length);
        expect((await search(ALWAYS, { limit: 0 })).total).toBe(kept.length);
        expect((await page({})).total).toBe(kept.length);
        await store.events.removeBefore(cut + 2 * DAY_MS);
        expect(await store.events.count()).toBe(0);
        expect(await store.events.get(last!.id)).toBeUndefined();
        store = await opened.reopen();
        const [next] = await append(draft());
        expect(next!.id > last!.id).toBe(true);
        expect((await page({})).total).toBe(1);
      });
    });

    casesContract(
      () => store,
      async () => (store = await opened.reopen()),
    );

    removalContract(
      () => store,
      async () => (store = await opened.reopen()),
    );

    notificationsContract(
      () => store,
      async () => (store = await opened.reopen()),
      newAlert,
    );

    flowsContract(
      () => store,
      async () => void (store = await opened.reopen()),
    );

    test("it says that it answers", async () => {
      await expect(store.check()).resolves.toBeUndefined();
    });
  });
}
