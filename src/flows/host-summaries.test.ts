import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOST_CONTACTS_MAX } from "./contacts.ts";
import { MINUTE_ENTRIES } from "./host-history.ts";
import { HostSummaries, type SummaryEvent } from "./host-summaries.ts";
import type { WindowTable } from "./window-table.ts";
import { batchOf, MINUTE, openWindows, T0, type FlowRecord } from "./flow-windows.fixture.ts";

const HISTORY = { lookbackMs: 3_600_000, entriesMax: 10_000 };
const EVERY_HOST = { peersMin: 1, portsMin: 1, bytesMin: 1 };
const START = Math.floor(T0 / MINUTE) * MINUTE;

/** All records in one table; late ones are in the table of `nowMs`. */
function tableOf(records: readonly FlowRecord[], nowMs = T0): WindowTable {
  const { windows, closed } = openWindows({ rowsMax: 1_000_000 });
  for (let from = 0; from < records.length; from += 4096) windows.add(batchOf(records.slice(from, from + 4096)), nowMs);
  windows.closeAll();
  expect(closed).toHaveLength(1);
  return closed[0]!;
}

const range = (count: number, make: (index: number) => FlowRecord) =>
  Array.from({ length: count }, (_, index) => make(index));
type Figures = Record<"peers" | "ports" | "bytes", number>;
const rawOf = ({ events }: { events: readonly SummaryEvent[] }) => events.map(({ draft }) => draft.raw);

describe("the summary of a window", () => {
  const settings = { peersMin: 10, portsMin: 10, bytesMin: 1_000_000 };
  const summaryOf = (records: readonly FlowRecord[]) => {
    return new HostSummaries(settings, HISTORY, "site").summarise(tableOf(records), T0);
  };

  test("reports a sweep by its peers, also with pings", () => {
    const swept = summaryOf(range(12, (index) => ({ src: 5, dst: 100 + index, protocol: 1, dstPort: 0x0800 })));
    expect(swept.events.map(({ draft }) => draft.raw)).toMatchObject([{ peers: 12, ports: 0, flows: 12 }]);
    const replies = summaryOf(range(12, (index) => ({ src: 5, dst: 100 + index, protocol: 1, dstPort: 0 })));
    expect(replies.events).toEqual([]);
  });

  test("reports a scan of ports above the scanner's own by its unanswered SYNs", () => {
    const scan = (flags: number) => range(12, (index) => ({ src: 5, srcPort: 1024, dstPort: 2000 + index, flags }));
    expect(summaryOf(scan(2)).events).toHaveLength(1);
    expect(summaryOf(scan(18)).events).toEqual([]);
  });

  test("reports many bytes, with the destination of most of them", () => {
    const { events } = summaryOf([
      { src: 5, dst: 7, dstPort: 443, srcPort: 50_000, bytes: 900_000n },
      { src: 5, dst: 8, dstPort: 22, srcPort: 50_000, bytes: 200_000n },
    ]);
    expect(events[0]!.draft.raw).toMatchObject({ bytes: 1_100_000, top_dst_port: 443, top_bytes: 900_000 });
    expect(events[0]!.draft.timestampMs % MINUTE).toBe(0);
  });

  test("has a limit on hosts and counts those beyond it", () => {
    const records = range(700, (index) => ({ src: 1 + index, bytes: 2_000_000n }));
    const { events, left } = summaryOf(records);
    expect([events.length, left]).toEqual([500, 200]);
    expect(new Set(events.map(({ idempotencyToken }) => idempotencyToken)).size).toBe(500);
  });

  test("leaves out rows without traffic", () => {
    const swept = (more: FlowRecord) => range(12, (index) => ({ src: 5, dst: 100 + index, srcPort: 50_000, ...more }));
    expect(summaryOf(swept({ bytes: 0n, packets: 0n })).events).toEqual([]);
    expect(summaryOf(swept({ bytes: 0n, packets: 1n })).events).toHaveLength(1);
    expect(summaryOf(swept({ bytes: 40n, packets: 0n })).events).toHaveLength(1);
  });
});

describe("late records", () => {
  const settings = { peersMin: 10, portsMin: 10, bytesMin: 1_000_000 };
  const sweep = (from: number, count: number, more: FlowRecord = {}) =>
    range(count, (index) => ({ src: 5, dst: from + index, srcPort: 50_000, dstPort: 445, ...more }));
  const later = (minutes: number) => T0 + minutes * MINUTE;

  test("cause another summary of their minute, including earlier records", () => {
    const summaries = new HostSummaries(settings, HISTORY, "site");
    expect(rawOf(summaries.summarise(tableOf(sweep(100, 8)), T0))).toEqual([]);
    const second = summaries.summarise(tableOf(sweep(106, 6), later(3)), later(3));
    expect(rawOf(second)).toMatchObject([{ peers: 12, packets: 14, bytes: 1400, flows: 14, revision: 1 }]);
    expect(second.events[0]!.draft.timestampMs).toBe(START + MINUTE);
    const third = summaries.summarise(tableOf(sweep(112, 1), later(5)), later(5));
    expect(rawOf(third)).toMatchObject([{ peers: 13, revision: 2 }]);
  });

  test("that add nothing to the last summary cause none", () => {
    const summaries = new HostSummaries(settings, HISTORY, "site");
    expect(rawOf(summaries.summarise(tableOf(sweep(100, 12)), T0))).toHaveLength(1);
    expect(rawOf(summaries.summarise(tableOf(sweep(100, 5), later(3)), later(3)))).toEqual([]);
  });

  test("are added to the bytes of the host and of its largest tuple", () => {
    const summaries = new HostSummaries(settings, HISTORY, "site");
    const upload = { src: 5, dst: 7, srcPort: 50_000, dstPort: 443, bytes: 600_000n };
    expect(rawOf(summaries.summarise(tableOf([upload]), T0))).toEqual([]);
    const both = summaries.summarise(tableOf([upload], later(3)), later(3));
    expect(rawOf(both)).toMatchObject([{ bytes: 1_200_000, top_bytes: 1_200_000, top_dst_port: 443 }]);
  });

  test("complete the intervals that end in the next minute", () => {
    const summaries = new HostSummaries(settings, HISTORY, "site");
    expect(rawOf(summaries.summarise(tableOf(sweep(100, 8, { last: START + 5000 })), T0))).toEqual([]);
    const before = tableOf(sweep(200, 8, { last: START - 5000 }), later(3));
    expect(rawOf(summaries.summarise(before, later(3)))).toMatchObject([
      { peers: 16, window_start: new Date(START).toISOString() },
    ]);
  });

  test("of an evicted minute are counted as uncounted rows", () => {
    const summaries = new HostSummaries(settings, { ...HISTORY, lookbackMs: 2 * MINUTE }, "site");
    summaries.summarise(tableOf(sweep(100, 1, { last: later(10) }), later(10)), later(10));
    expect(rawOf(summaries.summarise(tableOf(sweep(100, 12), later(10)), later(10)))).toEqual([]);
    expect(summaries.counts.uncountedRows).toBe(12);
  });
});

/** Words of addresses are in memory order: the number of a host is in the first of its last four bytes. */
const addressOf = (src: number) => `::${src}00:0`;

/** The final figures that summaries should have, by host and minute, counted naively. */
function expected(records: readonly FlowRecord[]): Map<string, Figures> {
  const sent = records.filter(({ packets }) => packets !== 0n);
  const most = new Map<string, Figures>();
  for (const { src, last, bytes } of sent) {
    const within = sent.filter((other) => other.src === src && other.last! > last! - MINUTE && other.last! <= last!);
    const key = `${addressOf(src!)} ${Math.floor(last! / MINUTE)}`;
    const known = most.get(key) ?? { peers: 0, ports: 0, bytes: 0 };
    most.set(key, {
      peers: Math.max(known.peers, new Set(within.map(({ dst }) => dst)).size),
      ports: Math.max(known.ports, new Set(within.map(({ dstPort }) => dstPort)).size),
      bytes: known.bytes + Number(bytes),
    });
  }
  return most;
}

test("summaries end at exact counts and never exceed them, for any order, batches, delays and restarts", () => {
  // Times that are often equal or exactly a minute apart, to hit the bounds of intervals.
  const last = fc
    .tuple(fc.integer({ min: 0, max: 3 }), fc.constantFrom(0, 1, 29_999, 30_000, 59_999, 12_345))
    .map(([minute, offset]) => START + minute * MINUTE + offset);
  const sent = fc.record({
    src: fc.integer({ min: 1, max: 2 }),
    dst: fc.integer({ min: 10, max: 16 }),
    dstPort: fc.integer({ min: 1, max: 5 }),
    srcPort: fc.constantFrom(50_000, 50_001),
    bytes: fc.bigInt({ min: 1n, max: 1000n }),
    last,
  });
  const unsent = fc.record({ src: fc.constant(1), dst: fc.integer({ min: 20, max: 30 }), last }).map((record) => {
    return { ...record, srcPort: 50_002, dstPort: 9, bytes: 0n, packets: 0n };
  });
  const batch = fc.record({
    records: fc.array(fc.oneof({ weight: 9, arbitrary: sent }, { weight: 1, arbitrary: unsent }), { maxLength: 25 }),
    waitMs: fc.integer({ min: 0, max: 5 * MINUTE }),
    closesEarly: fc.boolean(),
    restarts: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 8 }), (batches) => {
      const { windows, closed } = openWindows();
      const stored: WindowTable[] = [];
      let summaries = new HostSummaries(EVERY_HOST, HISTORY, "site");
      const reported = new Map<string, Figures>();
      const truth = expected(batches.flatMap(({ records }) => records));
      let nowMs = START + 4 * MINUTE;
      const takeAll = () => {
        for (const table of closed.splice(0)) {
          for (const raw of rawOf(summaries.summarise(table, nowMs))) {
            const key = `${raw["src_ip"]} ${Date.parse(raw["window_start"] as string) / MINUTE}`;
            const now = { peers: raw["peers"], ports: raw["ports"], bytes: raw["bytes"] } as Figures;
            expect(now.peers).toBeLessThanOrEqual(truth.get(key)!.peers);
            expect(now.ports).toBeLessThanOrEqual(truth.get(key)!.ports);
            reported.set(key, now);
          }
          stored.push(table);
        }
      };
      for (const { records, waitMs, closesEarly, restarts } of batches) {
        windows.add(batchOf(records), nowMs);
        if (closesEarly) windows.closeAll();
        nowMs += waitMs;
        windows.closeDue(nowMs);
        takeAll();
        if (!restarts) continue;
        summaries = new HostSummaries(EVERY_HOST, HISTORY, "site");
        for (const table of stored) summaries.restore(table, nowMs);
      }
      windows.closeAll();
      takeAll();
      expect(reported).toEqual(truth);
    }),
    { numRuns: 300 },
  );
});

describe("memory", () => {
  test("has a limit on entries: the oldest minutes are evicted first, and rows that do not fit are counted", () => {
    const entriesMax = 2 * MINUTE_ENTRIES + 100;
    const summaries = new HostSummaries(EVERY_HOST, { ...HISTORY, entriesMax }, "site");
    for (let minute = 0; minute < 5; minute++) {
      const last = T0 + minute * MINUTE;
      const records = range(40, (index) => ({ src: 5, dst: 100 + index, srcPort: 50_000, dstPort: 445, last }));
      expect(rawOf(summaries.summarise(tableOf(records, last), last))).toMatchObject([{ peers: 40 }]);
      expect(summaries.counts.summaryEntries).toBeLessThanOrEqual(entriesMax);
    }
    expect(summaries.counts.uncountedRows).toBe(0);
    const flood = range(500, (index) => ({ src: 1000 + index, srcPort: 50_000, dstPort: 80, last: T0 + 4 * MINUTE }));
    summaries.summarise(tableOf(flood, T0 + 4 * MINUTE), T0 + 4 * MINUTE);
    expect(summaries.counts.summaryEntries).toBeLessThanOrEqual(entriesMax);
    expect(summaries.counts.uncountedRows).toBeGreaterThan(400);
  });

  test("has a limit on the peers of one host in a minute", () => {
    const summaries = new HostSummaries(EVERY_HOST, { ...HISTORY, entriesMax: 1_000_000 }, "site");
    const sweep = range(HOST_CONTACTS_MAX + 100, (index) => ({ src: 5, dst: 100 + index, srcPort: 50_000 }));
    expect(rawOf(summaries.summarise(tableOf(sweep), T0))).toMatchObject([{ peers: HOST_CONTACTS_MAX }]);
    expect(summaries.counts.uncountedRows).toBe(100);
  });

  test("is not evicted by a table whose clock is far ahead", () => {
    const summaries = new HostSummaries(EVERY_HOST, { ...HISTORY, lookbackMs: MINUTE }, "site");
    const record = { src: 5, dst: 6, srcPort: 50_000, dstPort: 1 };
    summaries.summarise(tableOf([record]), T0);
    summaries.summarise(tableOf([{ ...record, last: T0 + 60 * MINUTE }]), T0);
    const late = summaries.summarise(tableOf([{ ...record, dst: 7 }]), T0);
    expect(rawOf(late)).toMatchObject([{ peers: 2 }]);
  });
});
