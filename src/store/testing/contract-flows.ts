import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatAddress, parseAddress, parseCidr } from "../../lib/ip.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { flowRowsOf } from "../../model/flow-rows.ts";
import { FLOW_WINDOW_MS } from "../../model/flow.ts";
import {
  MEASURES,
  SPLITS,
  TALKER_DIMENSIONS,
  type Flow,
  type FlowFilter,
  type FlowOrder,
  type Traffic,
} from "../../model/flow-query.ts";
import { protocolName } from "../../model/protocol.ts";
import type { ContractContext } from "./contract.ts";

type FlowWithoutId = Omit<Flow, "id">;

// The part of the contract about flows. The reference is plain evaluation over rows in memory.

const START = startOfDay(Date.UTC(2026, 5, 15));
const MINUTES = 4 * 24 * 60;

// Few distinct values, so that filters match and sums tie.
const ADDRESSES = [
  "10.0.0.1",
  "10.0.0.9",
  "10.0.0.10",
  "10.0.1.1",
  "192.0.2.255",
  "0.0.0.0",
  "255.255.255.255",
  "::",
  "::1",
  "2001:db8::1",
  "2001:db8::ffff:ffff:ffff:ffff",
  "2001:db8:0:1::1",
  "fe80::1",
  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
];
const address = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...ADDRESSES) },
  { weight: 1, arbitrary: fc.bigInt(0n, (1n << 128n) - 1n).map(formatAddress) },
);
const count64 = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt(0n, 3n) },
  { weight: 4, arbitrary: fc.bigInt(0n, 1_000_000n) },
  { weight: 1, arbitrary: fc.constantFrom((1n << 64n) - 1n, 1n << 63n, (1n << 53n) + 1n) },
);
const port = fc.oneof(fc.constantFrom(0, 22, 53, 443, 65_535), fc.integer({ min: 0, max: 65_535 }));

type FlowNat = Pick<FlowWithoutId, "natSrc" | "natDst" | "natSrcPort" | "natDstPort">;
const NO_NAT: FlowNat = { natSrc: null, natDst: null, natSrcPort: null, natDstPort: null };
const NAT_ADDRESSES = ["203.0.113.1", "203.0.113.2", "2001:db8::64", "10.0.0.1"];
const natEnd = fc.option(
  fc.record({
    address: fc.constantFrom(...NAT_ADDRESSES),
    port: fc.option(fc.constantFrom(443, 1024, 65_535), { freq: 4 }),
  }),
);
const natArbitrary: fc.Arbitrary<FlowNat> = fc.oneof(
  fc.constant(NO_NAT),
  fc.tuple(natEnd, natEnd).map(([src, dst]) => ({
    natSrc: src?.address ?? null,
    natDst: dst?.address ?? null,
    natSrcPort: src?.port ?? null,
    natDstPort: dst?.port ?? null,
  })),
);

const rowArbitrary: fc.Arbitrary<FlowWithoutId> = fc
  .record({
    nat: natArbitrary,
    minute: fc.oneof(fc.integer({ min: 0, max: MINUTES - 1 }), fc.constantFrom(0, 1438, 1439, 1440, 2879)),
    src: address,
    dst: address,
    srcPort: port,
    dstPort: port,
    protocol: fc.oneof(fc.constantFrom(1, 6, 17, 58), fc.integer({ min: 0, max: 255 })),
    tcpFlags: fc.integer({ min: 0, max: 511 }),
    bytes: count64,
    packets: count64,
    firstOffset: fc.integer({ min: -3_600_000, max: 59_999 }),
    duration: fc.integer({ min: 0, max: 7_200_000 }),
    exporter: fc.constantFrom("192.0.2.1", "192.0.2.2", "2001:db8::fe"),
    version: fc.constantFrom(5, 9, 10, 105),
  })
  .map(({ minute, firstOffset, duration, nat, ...row }) => {
    const windowStartMs = START + minute * FLOW_WINDOW_MS;
    const firstSeenMs = windowStartMs + firstOffset;
    return { ...row, ...nat, windowStartMs, firstSeenMs, lastSeenMs: firstSeenMs + duration };
  });

const range = fc.oneof(
  address.map((text) => parseCidr(text)!),
  fc
    .constantFrom("10.0.0.0/8", "10.0.0.0/24", "0.0.0.0/0", "2001:db8::/32", "2001:db8::/64", "::/0", "2001:db8::/63")
    .map((text) => parseCidr(text)!),
);
const time = fc.integer({ min: -60, max: MINUTES + 60 }).map((minute) => START + minute * FLOW_WINDOW_MS);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const filterArbitrary: fc.Arbitrary<FlowFilter> = fc.record({
  fromMs: maybe(time),
  toMs: maybe(time),
  src: maybe(range),
  dst: maybe(range),
  host: rarely(range),
  exporter: maybe(fc.constantFrom("192.0.2.1", "2001:db8::fe").map((text) => parseCidr(text)!)),
  port: maybe(port),
  protocol: maybe(fc.constantFrom(1, 6, 17, 255)),
  nat: rarely(
    fc.constantFrom(...NAT_ADDRESSES, "203.0.113.0/24", "10.0.0.0/8", "::/0").map((text) => parseCidr(text)!),
  ),
  natPort: rarely(fc.constantFrom(443, 1024, 2)),
});

function matches(row: FlowWithoutId, filter: FlowFilter): boolean {
  const at = row.windowStartMs + FLOW_WINDOW_MS;
  const within = (text: string, wanted: FlowFilter["src"]) =>
    !wanted || (parseAddress(text)! >= wanted.from && parseAddress(text)! <= wanted.to);
  const isNatEnd = (address: string | null, port: number | null) =>
    address !== null && within(address, filter.nat) && (filter.natPort === undefined || port === filter.natPort);
  return (
    (filter.fromMs === undefined || at >= filter.fromMs) &&
    (filter.toMs === undefined || at < filter.toMs) &&
    within(row.src, filter.src) &&
    within(row.dst, filter.dst) &&
    (within(row.src, filter.host) || within(row.dst, filter.host)) &&
    within(row.exporter, filter.exporter) &&
    (filter.port === undefined || row.srcPort === filter.port || row.dstPort === filter.port) &&
    (filter.protocol === undefined || row.protocol === filter.protocol) &&
    ((filter.nat === undefined && filter.natPort === undefined) ||
      isNatEnd(row.natSrc, row.natSrcPort) ||
      isNatEnd(row.natDst, row.natDstPort))
  );
}

const KEYS: Record<string, (row: FlowWithoutId) => string> = {
  src: (row) => row.src,
  dst: (row) => row.dst,
  pair: (row) => `${row.src} → ${row.dst}`,
  exporter: (row) => row.exporter,
  protocol: (row) => protocolName(row.protocol),
  port: ({ protocol, srcPort, dstPort }) => {
    const ports = [6, 17, 33, 132, 136].includes(protocol) ? [srcPort, dstPort].filter((port) => port > 0) : [];
    return ports.length === 0 ? "none" : String(Math.min(...ports));
  },
};

function addUp(
  rows: readonly FlowWithoutId[],
  keyOf: (row: FlowWithoutId) => string,
  by: "bytes" | "packets",
): Traffic[] {
  const sums = new Map<string, { bytes: bigint; packets: bigint; flowCount: number }>();
  for (const row of rows) {
    const sum = sums.get(keyOf(row)) ?? { bytes: 0n, packets: 0n, flowCount: 0 };
    sum.bytes += row.bytes;
    sum.packets += row.packets;
    sum.flowCount++;
    sums.set(keyOf(row), sum);
  }
  return [...sums]
    .map(([key, sum]) => ({ key, ...sum }))
    .sort((a, b) => (a[by] === b[by] ? (a.key < b.key ? -1 : 1) : a[by] > b[by] ? -1 : 1));
}

function compareFlows({ sort, descending }: FlowOrder): (a: Flow, b: Flow) => number {
  const sign = descending ? -1 : 1;
  const valueOf = (flow: Flow) => (sort === "timestamp" ? flow.windowStartMs : flow[sort]);
  return (a, b) => {
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x !== y) return x < y ? -sign : sign;
    if (a.windowStartMs !== b.windowStartMs) return sign * (a.windowStartMs - b.windowStartMs);
    return a.id < b.id ? -sign : sign;
  };
}

const NEWEST: FlowOrder = { sort: "timestamp", descending: true };
const LIST_MAX = 1000;

/** `store` returns the open store; `reopen` closes it and opens the same data again. */
export function flowsContract({ store, reopen, runs }: ContractContext): void {
  describe("flows", () => {
    let batches = 0;
    const append = (rows: readonly FlowWithoutId[]) => store().flows.append(flowRowsOf(rows), `batch-${batches++}`);
    const listAll = async (filter: FlowFilter = {}, order = NEWEST) => {
      const flows: Flow[] = [];
      for (;;) {
        const page = await store().flows.list(filter, order, flows.length, LIST_MAX);
        flows.push(...page.flows);
        if (flows.length >= page.total) return flows;
      }
    };
    const empty = () => store().flows.removeBefore(START + 10 * 365 * DAY_MS);
    const withoutId = ({ id: _id, ...row }: Flow): FlowWithoutId => row;
    const sample = (more: Partial<FlowWithoutId> = {}): FlowWithoutId => ({
      windowStartMs: START + 600_000,
      src: "10.0.0.1",
      dst: "192.0.2.9",
      srcPort: 40_000,
      dstPort: 443,
      protocol: 6,
      tcpFlags: 27,
      bytes: 1000n,
      packets: 10n,
      firstSeenMs: START + 600_500,
      lastSeenMs: START + 655_000,
      exporter: "192.0.2.1",
      version: 9,
      ...NO_NAT,
      ...more,
    });

    test("rows are read back unchanged, each with its own id", async () => {
      await empty();
      const rows = [
        sample({ bytes: (1n << 64n) - 1n, packets: (1n << 53n) + 1n }),
        sample({ src: "2001:db8::1", dst: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", protocol: 58, version: 10 }),
        sample({ src: "::", dst: "0.0.0.0", srcPort: 0, dstPort: 65_535, protocol: 255, tcpFlags: 65_535 }),
        sample({ firstSeenMs: START - 5_000_000, lastSeenMs: START + 700_000, version: 105 }),
        sample({ natSrc: "203.0.113.1", natSrcPort: 61_000, bytes: 0n, packets: 0n }),
        sample({ src: "2001:db8::1", natSrc: "203.0.113.1", natSrcPort: 65_535, natDst: "192.0.2.9", natDstPort: 1 }),
        sample({ natDst: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" }),
      ];
      await append(rows);
      const flows = await listAll();
      const byText = (row: FlowWithoutId) =>
        JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}` : value));
      expect(flows.map(withoutId).map(byText).sort()).toEqual(rows.map(byText).sort());
      expect(new Set(flows.map(({ id }) => id)).size).toBe(7);
      for (const { id } of flows) expect(id).toMatch(/^flw_[0-9a-z]{16,32}$/);
      expect(await store().flows.count()).toBe(7);
    });

    test("a filter on a translated address and port matches flows that have both at one end", async () => {
      await empty();
      await append([
        sample({ src: "10.0.0.1", natSrc: "203.0.113.1", natSrcPort: 61_000 }),
        sample({ src: "10.0.0.2", natSrc: "203.0.113.1", natSrcPort: 61_001 }),
        sample({ src: "10.0.0.3", natSrc: "203.0.113.2", natSrcPort: 61_000 }),
        sample({ src: "10.0.0.4", natDst: "203.0.113.1", natDstPort: 61_000 }),
        sample({ src: "10.0.0.5", natSrc: "203.0.113.1", natSrcPort: 9, natDst: "10.0.9.9", natDstPort: 61_000 }),
        sample({ src: "10.0.0.6" }),
        sample({ src: "203.0.113.1", srcPort: 61_000 }),
      ]);
      const found = async (filter: FlowFilter) => (await listAll(filter)).map(({ src }) => src).sort();
      const nat = parseCidr("203.0.113.1")!;
      expect(await found({ nat, natPort: 61_000 })).toEqual(["10.0.0.1", "10.0.0.4"]);
      expect(await found({ nat })).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.5"]);
      expect(await found({ natPort: 61_000 })).toEqual(["10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5"]);
      expect(await found({ port: 61_000 })).toEqual(["203.0.113.1"]);
      expect(await found({ nat: parseCidr("::/0")! })).toHaveLength(5);
    });

    test("ids stay the same after appends and restarts", async () => {
      await empty();
      await append([sample({ srcPort: 1 }), sample({ srcPort: 2 })]);
      const idOf = async (srcPort: number) => (await listAll()).find((flow) => flow.srcPort === srcPort)!.id;
      const before = [await idOf(1), await idOf(2)];
      await append([sample({ srcPort: 3, windowStartMs: START }), sample({ srcPort: 4 })]);
      await reopen();
      await append([sample({ srcPort: 5 })]);
      expect([await idOf(1), await idOf(2)]).toEqual(before);
      expect(new Set((await listAll()).map(({ id }) => id)).size).toBe(5);
    });

    test("a batch that is sent several times is stored once, also after a restart and over two days", async () => {
      await empty();
      const rows = flowRowsOf([
        sample({ windowStartMs: START + DAY_MS - 2 * FLOW_WINDOW_MS }),
        sample({ windowStartMs: START + DAY_MS - FLOW_WINDOW_MS }),
        sample({ windowStartMs: START + DAY_MS }),
      ]);
      await store().flows.append(rows, "twice");
      await store().flows.append(rows, "twice");
      await reopen();
      await Promise.all([store().flows.append(rows, "twice"), store().flows.append(rows, "twice")]);
      expect(await store().flows.count()).toBe(3);
      await store().flows.append(rows, "another");
      expect(await store().flows.count()).toBe(6);
    });

    test("the day of a row is that of its window's end, and days are removed as a whole", async () => {
      await empty();
      const lastOfDay = START + DAY_MS - FLOW_WINDOW_MS;
      await append([
        sample({ windowStartMs: lastOfDay - FLOW_WINDOW_MS, srcPort: 1 }),
        sample({ windowStartMs: lastOfDay, srcPort: 2 }),
        sample({ windowStartMs: lastOfDay + FLOW_WINDOW_MS, srcPort: 3 }),
        sample({ windowStartMs: START + 3 * DAY_MS, srcPort: 4 }),
      ]);
      expect(await store().flows.removeBefore(START + DAY_MS - 1)).toEqual({ days: 0, flows: 0 });
      expect(await store().flows.removeBefore(START + DAY_MS)).toEqual({ days: 1, flows: 1 });
      expect((await listAll()).map(({ srcPort }) => srcPort)).toEqual([4, 3, 2]);
      expect(await store().flows.removeBefore(START + 3 * DAY_MS - 1)).toEqual({ days: 1, flows: 2 });
      await reopen();
      expect((await listAll()).map(({ srcPort }) => srcPort)).toEqual([4]);
    });

    test("a query during appends and removals sees whole batches", async () => {
      await empty();
      let stored = 0;
      const done = new AbortController();
      const writing = (async () => {
        for (let nth = 0; nth < 15; nth++) {
          await append(Array.from({ length: 20 }, (_, i) => sample({ srcPort: nth * 20 + i })));
          stored += 20;
          await append([sample({ windowStartMs: START - 20 * DAY_MS + (nth % 3) * DAY_MS })]);
          await store().flows.removeBefore(START - 5 * DAY_MS);
        }
      })().finally(() => done.abort());
      while (!done.signal.aborted) {
        const known = stored;
        const { total, flows } = await store().flows.list({ fromMs: START }, NEWEST, 0, LIST_MAX);
        expect(total % 20).toBe(0);
        expect(total).toBeGreaterThanOrEqual(known);
        expect(flows.length).toBe(total);
        const [talker] = await store().flows.topTalkers({ filter: {}, dimension: "src", by: "bytes", limit: 1 });
        expect(talker === undefined || talker.flowCount >= known).toBe(true);
      }
      await writing;
    });

    test("an empty store answers every query with an empty result", async () => {
      await empty();
      const { flows } = store();
      expect(await flows.list({}, NEWEST, 0, 10)).toEqual({ total: 0, flows: [] });
      expect(await flows.topTalkers({ filter: {}, dimension: "pair", by: "bytes", limit: 5 })).toEqual([]);
      expect(await flows.protocols({})).toEqual([]);
      expect(await flows.count()).toBe(0);
      const filter = { fromMs: START, toMs: START + 180_000 };
      expect(await flows.timeseries({ filter, intervalMs: 60_000, by: "bytes", limit: 5 })).toEqual({
        timestamps: [START, START + 60_000, START + 120_000],
        series: [{ key: "all", bytes: [0n, 0n, 0n], packets: [0n, 0n, 0n], flowCount: [0, 0, 0] }],
      });
      expect(
        (await flows.timeseries({ filter, intervalMs: 60_000, split: "src", by: "bytes", limit: 5 })).series,
      ).toEqual([]);
    });

    test("the port of a group is the lower one, of both directions of a connection", async () => {
      await empty();
      await append([
        sample({ srcPort: 40_000, dstPort: 443, bytes: 5n }),
        sample({ src: "192.0.2.9", dst: "10.0.0.1", srcPort: 443, dstPort: 40_000, bytes: 7n }),
        sample({ srcPort: 0, dstPort: 8443, bytes: 4n }),
        sample({ src: "2001:db8::1", dst: "2001:db8::2", protocol: 17, srcPort: 53, dstPort: 53, bytes: 3n }),
        // The ports of ICMP are its type and code.
        sample({ protocol: 1, srcPort: 0, dstPort: 2048, bytes: 2n }),
        sample({ srcPort: 0, dstPort: 0, bytes: 1n }),
      ]);
      const talkers = await store().flows.topTalkers({ filter: {}, dimension: "port", by: "bytes", limit: 9 });
      expect(talkers.map(({ key, bytes }) => [key, bytes])).toEqual([
        ["443", 12n],
        ["8443", 4n],
        ["53", 3n],
        ["none", 3n],
      ]);
    });

    test("the time series of an earlier range has the points of a later one if it is shifted", async () => {
      await empty();
      const at = (minute: number) => sample({ windowStartMs: START + (minute - 1) * 60_000, bytes: BigInt(minute) });
      await append([13, 14, 15, 16, 17, 18, 19, 20].map(at));
      // 7 minutes are no multiple of the interval.
      const filter = { fromMs: START + 13 * 60_000, toMs: START + 20 * 60_000 };
      const query = { filter, intervalMs: 300_000, shiftMs: 7 * 60_000, by: "bytes" as const, limit: 5 };
      expect(await store().flows.timeseries(query)).toEqual({
        timestamps: [START + 20 * 60_000, START + 25 * 60_000],
        series: [{ key: "all", bytes: [75n, 37n], packets: [50n, 20n], flowCount: [5, 2] }],
      });
      const split = await store().flows.timeseries({ ...query, split: "src" });
      expect(split.series).toMatchObject([{ key: "10.0.0.1", bytes: [75n, 37n] }]);
    });

    test("a time series of too many points is refused", async () => {
      const filter = { fromMs: START, toMs: START + 2000 * 60_000 };
      const query = store().flows.timeseries({ filter, intervalMs: 60_000, by: "bytes", limit: 5 });
      await expect(query).rejects.toMatchObject({ name: "QueryRefused", field: "interval" });
    });

    test("sums past 64 bits are exact", async () => {
      await empty();
      const most = (1n << 64n) - 1n;
      await append(Array.from({ length: 5 }, () => sample({ bytes: most, packets: most })));
      const [talker] = await store().flows.topTalkers({ filter: {}, dimension: "src", by: "packets", limit: 1 });
      expect(talker).toEqual({ key: "10.0.0.1", bytes: 5n * most, packets: 5n * most, flowCount: 5 });
    });

    test("equal sums rank by key as text, also if the limit cuts them off", async () => {
      await empty();
      const hosts = Array.from({ length: 40 }, (_, nth) => [
        `10.0.0.${nth}`,
        `2001:db8::${(nth + 1).toString(16)}`,
      ]).flat();
      await append(hosts.map((src) => sample({ src, bytes: src === "10.0.0.7" ? 9n : 5n })));
      const keys = async (limit: number) =>
        (await store().flows.topTalkers({ filter: {}, dimension: "src", by: "bytes", limit })).map(({ key }) => key);
      const expected = ["10.0.0.7", ...hosts.filter((host) => host !== "10.0.0.7").sort()];
      for (const limit of [1, 2, 3, 39, 45, 79, 80, 100]) expect(await keys(limit)).toEqual(expected.slice(0, limit));
    });

    const isFour = (text: string) => text.includes(".");
    const KINDS_OF_ROWS: Record<string, (row: FlowWithoutId) => boolean> = {
      "both ends of one kind": ({ src, dst, bytes, packets }) =>
        isFour(src) === isFour(dst) && bytes < 1n << 63n && packets < 1n << 63n,
      "IPv4 alone": ({ src, dst }) => isFour(src) && isFour(dst),
      "IPv6 alone": ({ src, dst }) => !isFour(src) && !isFour(dst),
      "every mixture": () => true,
    };

    test.each(Object.keys(KINDS_OF_ROWS))(
      "any query agrees with plain evaluation: %s",
      async (kind) => {
        await empty();
        const rows = fc.sample(rowArbitrary.filter(KINDS_OF_ROWS[kind]!), { seed: 7, numRuns: 1500 });
        for (let from = 0; from < rows.length; from += 400) await append(rows.slice(from, from + 400));
        const flows = await listAll();
        expect(flows.length).toBe(rows.length);
        const order = fc.record({
          sort: fc.constantFrom("bytes" as const, "packets" as const, "timestamp" as const),
          descending: fc.boolean(),
        });
        const limit = fc.integer({ min: 1, max: 30 });
        const query = fc.record({
          filter: filterArbitrary,
          order,
          offset: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 2000 })),
          limit,
          by: fc.constantFrom(...MEASURES),
          dimension: fc.constantFrom(...TALKER_DIMENSIONS),
          split: fc.constantFrom(undefined, ...SPLITS),
          intervalMs: fc.constantFrom(60_000, 300_000, 3_600_000, DAY_MS, 7 * 60_000),
          shiftMs: fc.constantFrom(undefined, 0, 60_000, DAY_MS, 123_457),
        });
        await fc.assert(
          fc.asyncProperty(
            query,
            async ({ filter, order, offset, limit, by, dimension, split, intervalMs, shiftMs }) => {
              const matching = flows.filter((flow) => matches(flow, filter));
              const page = await store().flows.list(filter, order, offset, limit);
              expect(page.total).toBe(matching.length);
              expect(page.flows).toEqual([...matching].sort(compareFlows(order)).slice(offset, offset + limit));

              const talkers = addUp(matching, KEYS[dimension]!, by);
              expect(await store().flows.topTalkers({ filter, dimension, by, limit })).toEqual(talkers.slice(0, limit));
              expect(await store().flows.protocols(filter)).toEqual(addUp(matching, KEYS["protocol"]!, "bytes"));

              const fromMs = Math.max(filter.fromMs ?? START, START + DAY_MS);
              const toMs = Math.min(fromMs + 200 * intervalMs, START + 5 * DAY_MS);
              if (toMs <= fromMs) return;
              const narrowed = { ...filter, fromMs, toMs };
              const query = { filter: narrowed, intervalMs, shiftMs, split, by, limit: Math.min(limit, 5) };
              const { timestamps, series } = await store().flows.timeseries(query);
              const inRange = flows.filter((flow) => matches(flow, narrowed));
              const keyOf = split === undefined ? () => "all" : KEYS[split]!;
              const top = addUp(inRange, keyOf, by)
                .slice(0, query.limit)
                .map(({ key }) => key);
              const hasRest = inRange.some((flow) => !top.includes(keyOf(flow)));
              const keys = split === undefined ? ["all"] : [...top, ...(hasRest ? ["other"] : [])];
              expect(series.map(({ key }) => key)).toEqual(keys);
              const pointOf = (flow: Flow) => {
                const at = flow.windowStartMs + FLOW_WINDOW_MS + (shiftMs ?? 0);
                return at - (at % intervalMs);
              };
              for (const { key, bytes, packets, flowCount } of series) {
                const own = inRange.filter((flow) =>
                  key === "other" && split ? !top.includes(keyOf(flow)) : keyOf(flow) === key,
                );
                for (const [place, at] of timestamps.entries()) {
                  const atPoint = own.filter((flow) => pointOf(flow) === at);
                  expect(flowCount[place]).toBe(atPoint.length);
                  expect(bytes[place]).toBe(atPoint.reduce((sum, flow) => sum + flow.bytes, 0n));
                  expect(packets[place]).toBe(atPoint.reduce((sum, flow) => sum + flow.packets, 0n));
                }
              }
              const firstMs = fromMs + (shiftMs ?? 0);
              expect(timestamps[0]).toBe(firstMs - (firstMs % intervalMs));
              expect(series.flatMap(({ flowCount }) => flowCount).reduce((sum, n) => sum + n, 0)).toBe(inRange.length);
            },
          ),
          { numRuns: runs(15) },
        );
      },
      180_000,
    );
  });
}
