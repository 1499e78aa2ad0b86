import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DAY_MS } from "../../../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../../../model/flow-rows.ts";
import type { Flow, FlowFilter, FlowOrder } from "../../../model/flow-query.ts";
import { FLOW_WINDOW_MS } from "../../../model/flow.ts";
import { openFlowDatabase, type FlowDatabase } from "./flow-database.ts";

// Pages of flows by size, found with all places in memory and without: both must be those of a plain sort.

const DAY = Date.UTC(2026, 5, 15);
const PORTS = [22, 53, 443];
const SIZES = [0n, 1n, 1500n, (1n << 63n) + 5n];

const row = fc
  .record({
    minute: fc.integer({ min: 0, max: 2 * 24 * 60 - 2 }),
    isWide: fc.boolean(),
    host: fc.integer({ min: 1, max: 3 }),
    srcPort: fc.constantFrom(...PORTS),
    dstPort: fc.constantFrom(...PORTS),
    bytes: fc.constantFrom(...SIZES),
    packets: fc.constantFrom(...SIZES),
  })
  .map(({ minute, isWide, host, ...rest }): FlowRow => {
    const windowStartMs = DAY + minute * FLOW_WINDOW_MS;
    return {
      ...rest,
      windowStartMs,
      src: isWide ? `2001:db8::${host}` : `10.0.0.${host}`,
      dst: isWide ? "2001:db8::99" : "192.0.2.9",
      protocol: 6,
      tcpFlags: 27,
      firstSeenMs: windowStartMs,
      lastSeenMs: windowStartMs + 5,
      exporter: "192.0.2.1",
      version: 9,
    };
  });

const request = fc.record({
  filter: fc.record(
    {
      port: fc.constantFrom(...PORTS, 80),
      protocol: fc.constantFrom(6, 17),
      fromMs: fc.constantFrom(DAY, DAY + DAY_MS / 2, DAY + DAY_MS),
      toMs: fc.constantFrom(DAY + DAY_MS, DAY + 2 * DAY_MS),
    },
    { requiredKeys: [] },
  ),
  order: fc.record({
    sort: fc.constantFrom("bytes" as const, "packets" as const),
    descending: fc.boolean(),
  }),
  offset: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
  limit: fc.integer({ min: 1, max: 100 }),
});

function matches({ windowStartMs, srcPort, dstPort, protocol }: Flow, filter: FlowFilter): boolean {
  const at = windowStartMs + FLOW_WINDOW_MS;
  return (
    at >= (filter.fromMs ?? 0) &&
    at < (filter.toMs ?? Infinity) &&
    (filter.port === undefined || srcPort === filter.port || dstPort === filter.port) &&
    (filter.protocol === undefined || protocol === filter.protocol)
  );
}

/** An id ascends with the time, then with the number within the day. */
function compareFlows({ sort, descending }: FlowOrder): (a: Flow, b: Flow) => number {
  const sign = descending ? -1 : 1;
  const size = (flow: Flow) => (sort === "packets" ? flow.packets : flow.bytes);
  return (a, b) => sign * (size(a) < size(b) ? -1 : size(a) > size(b) ? 1 : a.id < b.id ? -1 : 1);
}

describe.each([
  ["with places in memory", undefined],
  ["without places in memory", 0],
])("pages by size %s", (_, placesBytesMax) => {
  let dataDir: string;
  let flows: FlowDatabase;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "tocsin-flow-pages-"));
    const log = pino({ level: "silent" });
    flows = await openFlowDatabase({ dataDir, indexPrefix: "site", idleMs: 5, placesBytesMax, log, now: () => DAY });
    await flows.start();
  });
  afterEach(async () => {
    await flows.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("are those of a plain sort, also of late rows", async () => {
    const batches = fc.sample(fc.array(row, { minLength: 20, maxLength: 60 }), { numRuns: 4, seed: 61 });
    for (const [nth, batch] of batches.entries()) {
      await flows.append(flowRowsOf(batch), `batch-${nth}`);
      const stored = (await flows.list({}, { sort: "timestamp", descending: true }, 0, 1000)).flows;
      expect(stored).toHaveLength(batches.slice(0, nth + 1).flat().length);
      await fc.assert(
        fc.asyncProperty(request, async ({ filter, order, offset, limit }) => {
          const expected = stored.filter((flow) => matches(flow, filter)).sort(compareFlows(order));
          expect(await flows.list(filter, order, offset, limit)).toEqual({
            total: expected.length,
            flows: expected.slice(offset, offset + limit),
          });
        }),
        { numRuns: 40 },
      );
    }
  });
});
