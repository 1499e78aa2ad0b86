import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ENTITY_KINDS, entitiesOf, type EntityKind } from "../../model/entity.ts";
import type { EntityQuery, EntitySummary } from "../../model/entity-query.ts";
import type { EventDraft, JsonObject } from "../../model/event.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about searches for entities. The reference reads the events one by one.

const START = startOfDay(Date.UTC(2026, 4, 1));
const DAYS = 4;

const ADDRESSES = ["10.0.0.1", "10.0.0.10", "2001:db8::1", "2001:DB8:0::1", "::ffff:10.0.0.1", "gateway", "-"];
const NAMES = ["ada", "Ada.Morin", "ÄRGER", "horvat", "unknown", 'it\'s 10% "off"', "a\\b", "x".repeat(257), ""];
const value = (texts: readonly string[]) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...texts) },
    { weight: 1, arbitrary: fc.constantFrom(7, true, null) },
  );
const rawArbitrary = fc.record(
  {
    ...Object.fromEntries(["src_ip", "dst_ip", "local_ip", "device_ip"].map((field) => [field, value(ADDRESSES)])),
    ...Object.fromEntries(
      ["user", "door", "camera", "src_mac", "dst_mac", "host", "src_host", "device", "device_mac", "from", "to"].map(
        (field) => [field, value(NAMES)],
      ),
    ),
    message: fc.constantFrom("ada", '"s:raw.dst_mac":"horvat"'),
  },
  { requiredKeys: [] },
);

function reference(
  events: readonly EventDraft[],
  { search, isWhole, kinds, fromMs, toMs }: EntityQuery,
): EntitySummary[] {
  const found = new Map<string, EntitySummary>();
  const needle = search.toLowerCase();
  for (const { raw, timestampMs } of events) {
    if (timestampMs < startOfDay(fromMs) || timestampMs >= startOfDay(toMs + DAY_MS - 1)) continue;
    for (const { kind, value } of entitiesOf(raw)) {
      const isMatch = isWhole ? value === search : value.toLowerCase().includes(needle);
      if (!(kinds ?? ENTITY_KINDS).includes(kind) || !isMatch) continue;
      const before = found.get(`${kind} ${value}`);
      found.set(`${kind} ${value}`, {
        kind,
        value,
        firstSeenMs: Math.min(timestampMs, before?.firstSeenMs ?? Infinity),
        lastSeenMs: Math.max(timestampMs, before?.lastSeenMs ?? 0),
        events: (before?.events ?? 0) + 1,
      });
    }
  }
  const rank = ({ value }: EntitySummary) => {
    const folded = value.toLowerCase();
    return folded === needle ? 0 : folded.startsWith(needle) ? 1 : 2;
  };
  return [...found.values()].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      b.lastSeenMs - a.lastSeenMs ||
      ENTITY_KINDS.indexOf(a.kind) - ENTITY_KINDS.indexOf(b.kind) ||
      (a.value < b.value ? -1 : 1),
  );
}

export function entitiesContract({ store, reopen, draft, append, runs }: ContractContext): void {
  describe("entities", () => {
    const events: EventDraft[] = [];
    const add = async (drafts: readonly EventDraft[]) => {
      events.push(...drafts);
      for (let at = 0; at < drafts.length; at += 100) await append(...drafts.slice(at, at + 100));
    };
    const find = (search: string, more: Partial<EntityQuery> = {}) =>
      store().events.entities({ search, fromMs: START, toMs: START + DAYS * DAY_MS, limit: 1000, ...more });

    beforeAll(async () => {
      const raws = fc.sample(rawArbitrary, { seed: 11, numRuns: 1000 }) as JsonObject[];
      await add(raws.map((raw, nth) => draft({ raw, timestampMs: START + ((nth * 7919) % (DAYS * 1440)) * 60_000 })));
    });

    const queryArbitrary = fc.record({
      search: fc.constantFrom(
        "",
        "a",
        "ADA",
        "10.0",
        "10.0.0.1",
        "2001:db8::",
        "ärger",
        "10%",
        "\\",
        "'",
        '"',
        "nobody",
      ),
      isWhole: fc.boolean(),
      kinds: fc.option(fc.subarray([...ENTITY_KINDS] as EntityKind[], { minLength: 1 }), { nil: undefined }),
      fromMs: fc.integer({ min: -100, max: DAYS * 1440 }).map((minute) => START + minute * 60_000),
      toMs: fc.integer({ min: 0, max: DAYS * 1440 + 100 }).map((minute) => START + minute * 60_000),
      limit: fc.constantFrom(1, 3, 1000),
    });
    const agrees = () =>
      fc.assert(
        fc.asyncProperty(queryArbitrary, async (query) => {
          if (query.fromMs > query.toMs) return;
          const expected = reference(events, query);
          const found = await store().events.entities(query);
          expect(found.entities).toEqual(expected.slice(0, query.limit));
          if (expected.length > 0) expect(found.total).toBe(expected.length);
          expect(found).toMatchObject({
            fromMs: startOfDay(query.fromMs),
            toMs: startOfDay(query.toMs + DAY_MS - 1),
            isComplete: true,
          });
        }),
        { numRuns: runs(60), seed: 5 },
      );

    test("a search agrees with plain evaluation", agrees);

    test("an event is found as soon as it is stored, also after a restart", async () => {
      const at = START + DAY_MS;
      await add([draft({ raw: { user: "new.person", src_ip: "2001:DB8::ABCD" }, timestampMs: at })]);
      const found = { firstSeenMs: at, lastSeenMs: at, events: 1 };
      for (let round = 0; round < 2; round++) {
        expect((await find("NEW.per")).entities).toEqual([{ kind: "user", value: "new.person", ...found }]);
        expect((await find("db8::abcd")).entities).toEqual([{ kind: "address", value: "2001:db8::abcd", ...found }]);
        await reopen();
      }
      await agrees();
    });

    test("amendments do not count twice", async () => {
      const [event] = await append(draft({ raw: { camera: "Amended" }, timestampMs: START }));
      await store().events.amend([{ id: event!.id, enrichment: { note: 1 } }]);
      expect((await find("amended")).entities).toMatchObject([{ kind: "camera", events: 1 }]);
    });

    test("a removed day takes its entities along", async () => {
      await add([draft({ raw: { door: "Gone" }, timestampMs: START + 5 })]);
      expect((await find("gone")).total).toBe(1);
      await store().events.removeBefore(START + DAY_MS);
      expect(await find("gone")).toMatchObject({ total: 0, entities: [], isComplete: true });
      for (let nth = events.length - 1; nth >= 0; nth--)
        if (events[nth]!.timestampMs < START + DAY_MS) events.splice(nth, 1);
      await agrees();
    });
  });
}
