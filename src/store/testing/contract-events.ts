import { beforeAll, describe, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Condition } from "../../model/condition.ts";
import type { Event, JsonObject } from "../../model/event.ts";
import type { Position } from "../../model/page.ts";
import type { EventFilter } from "../ports/event-engine.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { searchFault } from "../search/text-search.ts";
import { idsOf, type ContractContext } from "./contract.ts";

export function eventsContract({ setClock, store, clock, draft, append, page, search }: ContractContext): void {
  describe("events", () => {
    test("an appended event is read back unchanged, by id and in lists, at once", async () => {
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
        timestamp: new Date(clock()).toISOString(),
        raw: parseExact(JSON.stringify(raw)) as JsonObject,
        enrichment: { geo: { country: "AT" } },
      });
      expect(parseExact((await store().events.get(event!.id))!)).toEqual(event);
      expect(idsOf((await page({})).items)).toContain(event!.id);
    });

    test("a batch of two days is in every read once, while other events of one of the days are stored", async () => {
      const type = "day_change";
      const midnight = startOfDay(clock()) - 20 * DAY_MS;
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
      for await (const chunk of store().events.scan({ condition }, new AbortController().signal))
        scanned.push(...idsOf(chunk));
      expect(scanned.sort()).toEqual(stored.map(({ id }) => id).sort());
    });

    test("ids rise in the order of arrival, also within a call and when the clock goes back", async () => {
      const first = await append(draft(), draft(), draft());
      setClock(clock() - 60_000);
      const second = await append(draft());
      setClock(clock() + 60_000);
      const all = [...first, ...second].map(({ id }) => id);
      expect(all).toEqual([...all].sort());
    });

    test("an unknown id is not found", async () => {
      expect(await store().events.get("evt_0")).toBeUndefined();
      const [event] = await append(draft());
      const other = event!.id.slice(0, -1) + (event!.id.endsWith("0") ? "1" : "0");
      expect(await store().events.get(other)).toBeUndefined();
    });

    test("a token finds its event for a day, and no longer", async () => {
      const [stored] = await store().events.append([{ draft: draft(), idempotencyToken: "token-1" }]);
      expect(await store().events.findByToken("token-1")).toEqual(stored);
      expect(await store().events.findByToken("token-2")).toBeUndefined();
      const places = [0, 9, 10, 9999];
      const batch = await store().events.append(
        places.map((place) => ({
          draft: draft({ timestampMs: clock() - (place % 3) * DAY_MS }),
          idempotencyToken: `token-1 ${place}`,
        })),
      );
      const found = new Map(places.map((place, i) => [place, batch[i]!.id]));
      expect(await store().events.findByTokens("token-1")).toEqual(found);
      expect(await store().events.findByTokens("token-")).toEqual(new Map());
      expect(await store().events.findByToken("token-1")).toEqual(stored);
      setClock(clock() + DAY_MS + 1000);
      await append(draft());
      expect(await store().events.findByToken("token-1")).toBeUndefined();
      expect(await store().events.findByTokens("token-1")).toEqual(new Map());
      setClock(clock() - DAY_MS + 1000);
    });

    test("with concurrent writers and readers, every read sees all events appended before it", async () => {
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
            expect(idsOf(filtered.items)).toContain(event!.id);
            expect(idsOf(words.items)).toEqual([event!.id]);
            expect(idsOf(found.items)).toEqual([event!.id]);
            seen++;
          }
        }),
      );
      expect(seen).toBe(80);
      expect((await page({ type })).total).toBe(80);
    });
  });
}

export function listsContract({ setClock, store, clock, draft, append, page }: ContractContext): void {
  describe("lists", () => {
    const type = "listed";
    let events: Event[] = [];

    beforeAll(async () => {
      // Three days, with times that go back and forth and that several events share.
      const times = Array.from({ length: 250 }, (_, i) => clock() - ((i * 7919) % 250) * 1_000_000 + (i % 3) * 17);
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
      [
        "lists of values",
        { severity: ["low", "high"], source: ["custom", "platform_network"], class: ["audit", "network"] },
        (event) =>
          ["low", "high"].includes(event.severity) &&
          ["custom", "platform_network"].includes(event.source) &&
          event.class !== "security",
      ],
      [
        "words and lists of values",
        { search: "needle", severity: ["low", "high", "info"], class: ["audit", "security"] },
        (event) =>
          event.raw.text !== "hay" && ["low", "high", "info"].includes(event.severity) && event.class !== "network",
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
        byPage.push(...idsOf(items));
      }
      expect(byPage).toEqual(wanted);
      const byCursor: string[] = [];
      let after: string | undefined;
      do {
        const position: Position = { mode: "cursor", after, size: 17 };
        const { items, total, nextCursor } = await store().events.list({ type, ...filter }, position);
        expect(total).toBe(wanted.length);
        byCursor.push(...idsOf(items));
        after = nextCursor ?? undefined;
        if (after !== undefined) expect(after).toBe(byCursor.at(-1));
      } while (after !== undefined);
      expect(byCursor).toEqual(wanted);
    });

    test("without a filter, a walk by pages or by cursor sees every event once", async () => {
      const total = await store().events.count();
      const walked: string[] = [];
      let after: string | undefined;
      do {
        const { items, nextCursor } = await store().events.list({}, { mode: "cursor", after, size: 100 });
        walked.push(...idsOf(items));
        after = nextCursor ?? undefined;
      } while (after !== undefined);
      expect(walked.length).toBe(total);
      expect(new Set(walked).size).toBe(total);
      const paged: string[] = [];
      for (let number = 1; number <= Math.ceil(total / 100); number++)
        paged.push(...idsOf((await page({}, number)).items));
      expect(paged).toEqual(walked);
      const range = { fromMs: Date.UTC(2026, 5, 14, 3), toMs: Date.UTC(2026, 5, 15, 4, 30) };
      const inRange: string[] = [];
      for (let number = 1; number <= 10; number++) inRange.push(...idsOf((await page(range, number, 50)).items));
      expect(inRange.length).toBe((await page(range)).total);
      expect(new Set(inRange).size).toBe(inRange.length);
    });

    test("new rows neither repeat nor skip a row of a cursor walk", async () => {
      const wanted = events.map(({ id }) => id);
      const walked: string[] = [];
      let after: string | undefined;
      do {
        const { items, nextCursor } = await store().events.list({ type }, { mode: "cursor", after, size: 50 });
        walked.push(...idsOf(items));
        after = nextCursor ?? undefined;
        setClock(clock() + 1000);
        await append(draft({ type: "listed", timestampMs: clock(), raw: { text: "late" } }));
      } while (after !== undefined);
      expect(walked).toEqual(wanted);
    });

    test("an unknown cursor and a search without a word are refused with the field's name", async () => {
      const unknown = store().events.list({}, { mode: "cursor", after: "evt_0123", size: 5 });
      await expect(unknown).rejects.toThrow(QueryRefused);
      await expect(unknown).rejects.toHaveProperty("field", "after");
      const empty = page({ search: "***" });
      await expect(empty).rejects.toHaveProperty("field", "search");
      expect(searchFault("***")).toEqual(expect.any(String));
      expect(searchFault("needle")).toBeUndefined();
    });
  });
}
