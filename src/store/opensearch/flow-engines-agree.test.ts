import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseCidr } from "../../lib/ip.ts";
import { DAY_MS } from "../../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../../model/flow-rows.ts";
import { FLOW_SORTS, MEASURES, SPLITS, TALKER_DIMENSIONS, type Flow } from "../../model/flow-query.ts";
import type { FlowEngine } from "../ports/flow-engine.ts";
import type { StoreUnderTest } from "../testing/contract.ts";
import { RUNS_SHARE } from "../../../test/cluster/shared-opensearch.ts";
import { openUnderTest } from "../embedded/embedded-store.fixture.ts";
import { openFlowsUnderTest, withOpenSearch, type FlowsUnderTest } from "./opensearch-store.fixture.ts";

const START = Date.UTC(2026, 5, 15);
const MINUTE = 60_000;
/** More pairs than a shard returns at first, most with equal sums. */
const ROWS = 12_500;

const addressArbitrary = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 400 }).map((nth) => `10.0.${nth >> 8}.${nth & 255}`) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }).map((nth) => `2001:db8::${nth.toString(16)}`) },
);
const counter = fc.oneof(
  { weight: 8, arbitrary: fc.bigInt(40n, 44n) },
  { weight: 4, arbitrary: fc.bigInt(0n, 10n ** 9n) },
  { weight: 1, arbitrary: fc.bigInt(0n, 1n << 55n) },
);
const rowArbitrary: fc.Arbitrary<FlowRow> = fc
  .record({
    minute: fc.integer({ min: 0, max: 3 * 24 * 60 - 2 }),
    src: addressArbitrary,
    dst: addressArbitrary,
    srcPort: fc.integer({ min: 0, max: 65_535 }),
    dstPort: fc.constantFrom(0, 22, 53, 443, 8443),
    protocol: fc.constantFrom(1, 6, 6, 6, 17),
    tcpFlags: fc.integer({ min: 0, max: 255 }),
    bytes: counter,
    packets: counter,
    exporter: fc.constantFrom("192.0.2.1", "192.0.2.2"),
    version: fc.constantFrom(5, 9, 10),
  })
  .map(({ minute, ...row }) => {
    const windowStartMs = START + minute * MINUTE;
    return { ...row, windowStartMs, firstSeenMs: windowStartMs, lastSeenMs: windowStartMs + 1000 };
  });

const question = fc.record({
  filter: fc.record({
    fromMs: fc.option(
      fc.integer({ min: 0, max: 60 }).map((hour) => START + hour * 3_600_000),
      { nil: undefined },
    ),
    toMs: fc.option(
      fc.integer({ min: 24, max: 80 }).map((hour) => START + hour * 3_600_000),
      { nil: undefined },
    ),
    host: fc.option(
      fc.constantFrom("10.0.0.0/24", "2001:db8::/32", "10.0.1.7").map((text) => parseCidr(text)!),
      {
        nil: undefined,
        freq: 1,
      },
    ),
    port: fc.option(fc.constantFrom(22, 443), { nil: undefined, freq: 1 }),
  }),
  order: fc.record({ sort: fc.constantFrom(...FLOW_SORTS), descending: fc.boolean() }),
  offset: fc.oneof(fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 9000, max: ROWS })),
  limit: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(100, 1000)),
  dimension: fc.constantFrom(...TALKER_DIMENSIONS),
  by: fc.constantFrom(...MEASURES),
  split: fc.constantFrom(undefined, ...SPLITS),
  intervalMs: fc.constantFrom(300_000, 3_600_000, 7 * MINUTE),
});

await withOpenSearch("flows in OpenSearch and in the embedded store", (url) => {
  let embedded: StoreUnderTest;
  let opened: FlowsUnderTest;
  let engines: readonly FlowEngine[];

  beforeAll(async () => {
    embedded = await openUnderTest(Date.now);
    opened = await openFlowsUnderTest(url, { shards: 2 });
    engines = [embedded.store.flows, opened.flows];
    const rows = fc.sample(rowArbitrary, { seed: 11, numRuns: ROWS });
    for (let from = 0; from < ROWS; from += 2500) {
      const batch = flowRowsOf(rows.slice(from, from + 2500));
      await Promise.all(engines.map((engine) => engine.append(batch, `batch-${from}`)));
    }
  });
  afterAll(async () => {
    await opened.end();
    await embedded.end();
  });

  /** Each engine has ids of its own, and with them its own order of rows that tie. */
  const comparable = (flows: readonly Flow[]) =>
    flows.map(({ windowStartMs, bytes, packets }) => `${windowStartMs} ${bytes} ${packets}`);

  test("any question has the same answer", async () => {
    await fc.assert(
      fc.asyncProperty(question, async ({ filter, order, offset, limit, dimension, by, split, intervalMs }) => {
        const [expected, actual] = await Promise.all(
          engines.map(async (engine) => {
            const { total, flows } = await engine.list(filter, order, offset, limit);
            // The other measure decides between rows that tie in one engine only.
            const key = order.sort === "timestamp" ? "windowStartMs" : order.sort;
            return {
              total,
              order: flows.map((flow) => `${flow[key]} ${flow.windowStartMs}`),
              talkers: await engine.topTalkers({ filter, dimension, by, limit }),
              protocols: await engine.protocols(filter),
              series: await engine.timeseries({
                filter: { ...filter, fromMs: START + DAY_MS, toMs: START + 2 * DAY_MS },
                intervalMs,
                split,
                by,
                limit: Math.min(limit, 20),
              }),
            };
          }),
        );
        expect(actual).toEqual(expected);
      }),
      { numRuns: Math.ceil(50 * RUNS_SHARE) },
    );
  });

  test("pages of any depth have every row once", async () => {
    for (const sort of FLOW_SORTS) {
      const pages: Flow[] = [];
      for (const offset of [0, 5000, 10_000]) {
        const { total, flows } = await opened.flows.list({}, { sort, descending: true }, offset, 5000);
        expect(total).toBe(ROWS);
        pages.push(...flows);
      }
      expect(new Set(pages.map(({ id }) => id)).size).toBe(ROWS);
      const { flows } = await embedded.store.flows.list({}, { sort, descending: true }, 0, ROWS);
      const sorted = (rows: readonly Flow[]) => comparable(rows).sort();
      expect(sorted(pages)).toEqual(sorted(flows));
    }
    expect(await opened.flows.list({}, { sort: "bytes", descending: true }, ROWS, 10)).toEqual({
      total: ROWS,
      flows: [],
    });
  });
});
