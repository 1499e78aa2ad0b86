import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { Event, EventDraft, JsonObject } from "../../model/event.ts";
import type { EventEngine } from "../ports/event-engine.ts";
import { RUNS_SHARE } from "../../../test/cluster/shared-opensearch.ts";
import { openUnderTest } from "../embedded/embedded-store.fixture.ts";
import { conditions, drafts } from "../testing/arbitrary-events.ts";
import { sampleAggregations, SAMPLE_FIELDS } from "../testing/reference-queries.ts";
import { openEventsUnderTest, withEventEngines } from "./opensearch-events.fixture.ts";

// The same operations on the embedded engine and on OpenSearch give the same answers.

const START = Date.UTC(2026, 5, 10);
const DAYS = 4;
const OPERATIONS = Math.ceil(200 * RUNS_SHARE);

const time = fc.integer({ min: START, max: START + DAYS * DAY_MS });
const ranges = fc.oneof(
  fc.constant({}),
  time.map((fromMs) => ({ fromMs })),
  fc.tuple(time, time).map(([a, b]) => ({ fromMs: Math.min(a, b), toMs: Math.max(a, b) })),
);

type Operation = (engine: EventEngine, ids: Map<string, number>) => Promise<unknown>;

/** The engines give events different ids; each event has a number in `raw` instead. */
const numberOf = (text: string) => (parseExact(text) as Event).raw["n"] as number;

function plain(text: string): unknown {
  const { id: _id, ...event } = parseExact(text) as Event;
  return event;
}

/** Sums of doubles differ in their last digits. */
function rounded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      (key === "sum" || key === "avg") && typeof inner === "number" ? Number(inner.toPrecision(9)) : rounded(inner),
    ]),
  );
}

function operations(): Operation[] {
  let next = 0;
  let amendments = 0;
  const append = fc
    .tuple(fc.array(drafts(START, START + DAYS * DAY_MS), { minLength: 1, maxLength: 40, size: "max" }), fc.boolean())
    .map(([several, hasToken]): Operation => {
      const numbered = several.map((draft): EventDraft => {
        const n = next++;
        // No two events have the same time: ids, which differ, would order them.
        return {
          ...draft,
          timestampMs: draft.timestampMs - (draft.timestampMs % 1000) + (n % 1000),
          raw: { ...draft.raw, n },
        };
      });
      const token = hasToken ? `token ${next}` : undefined;
      return async (engine, ids) => {
        const stored = await engine.append(
          numbered.map((draft, nth) => ({ draft, idempotencyToken: token && `${token} ${nth}` })),
        );
        for (const { id, text } of stored) ids.set(id, numberOf(text));
        const found = token === undefined ? undefined : await engine.findByTokens(token);
        return [
          stored.map(({ text }) => plain(text)),
          found && [...found].map(([nth, id]) => [nth, ids.get(id)]).sort(),
        ];
      };
    });
  const amend = fc.tuple(fc.integer({ min: 2, max: 7 }), drafts(0, 1)).map(([every, { enrichment }]): Operation => {
    // A key of its own: the embedded engine still finds words that a change has removed.
    const added: JsonObject = { [`added${++amendments}`]: enrichment, seen: every };
    return async (engine, ids) => {
      const chosen = [...ids].filter(([, n]) => n % every === 0).map(([id]) => ({ id, enrichment: added }));
      await engine.amend(chosen);
      return Promise.all(chosen.slice(0, 5).map(async ({ id }) => plain((await engine.get(id)) ?? "{}")));
    };
  });
  const search = fc
    .tuple(
      conditions(),
      ranges,
      fc.array(fc.record({ field: fc.constantFrom(...SAMPLE_FIELDS), descending: fc.boolean() }), { maxLength: 2 }),
      sampleAggregations,
    )
    .map(([condition, range, sort, aggregation]): Operation => async (engine) => {
      const query = { condition, ...range, sort, limit: 20, aggs: [{ name: "a", aggregation }] };
      const first = await engine.search(query);
      const second = first.nextCursor === null ? undefined : await engine.search({ ...query, after: first.nextCursor });
      return [first, second].map((page) => page && [page.total, page.items.map(plain), rounded(page.aggregations)]);
    });
  const list = fc
    .tuple(
      ranges,
      fc.constantFrom(undefined, "alpha", "be", "10.0.0.1", '"line break"', "wien", "1 true"),
      fc.integer({ min: 1, max: 3 }),
    )
    .map(([range, words, page]): Operation => async (engine) => {
      const { total, items } = await engine.list({ ...range, search: words }, { mode: "page", page, size: 10 });
      return [total, items.map(plain)];
    });
  const entities = fc.constantFrom("", "10.", "alpha", "BE").map((text): Operation => (engine) => {
    return engine.entities({ search: text, fromMs: START, toMs: START + DAYS * DAY_MS, limit: 50 });
  });
  const fields = fc.constant<Operation>(async (engine) => {
    const { total, fields } = await engine.fields({});
    return [total, fields.filter(({ path }) => path !== "id")];
  });
  const remove = fc.constant<Operation>(async (engine) => [
    await engine.removeBefore(START + DAY_MS),
    await engine.count(),
  ]);
  const any = fc.oneof(
    { weight: 4, arbitrary: append },
    { weight: 2, arbitrary: amend },
    { weight: 6, arbitrary: search },
    { weight: 3, arbitrary: list },
    { weight: 1, arbitrary: entities },
    { weight: 1, arbitrary: fields },
  );
  const half = (seed: number) => fc.sample(any, { seed, numRuns: Math.ceil(OPERATIONS / 2) });
  return [...fc.sample(append, { seed: 3, numRuns: 3 }), ...half(17), ...fc.sample(remove, 1), ...half(19)];
}

await withEventEngines("the embedded engine and OpenSearch", (url) => {
  test("give the same answers to the same operations", async () => {
    const now = () => START + DAYS * DAY_MS;
    const embedded = await openUnderTest(now);
    const cluster = await openEventsUnderTest(url, { shards: 2, now });
    const known = { embedded: new Map<string, number>(), cluster: new Map<string, number>() };
    for (const [nth, operate] of operations().entries()) {
      const wanted = await operate(embedded.store.events, known.embedded);
      expect(await operate(cluster.events, known.cluster), `operation ${nth}`).toEqual(wanted);
    }
    expect(await cluster.events.count()).toBeGreaterThan(100);
    await cluster.end();
    await embedded.end();
  });
});
