import { expect, test } from "vitest";
import { formatAddress } from "../lib/ip.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { demoFlows } from "./demo-flows.ts";
import { randomFrom } from "./random.ts";
import { makeSite } from "./site.ts";

const to = Date.UTC(2026, 10, 15, 14, 30, 12);
const week = { seed: 7, from: to - 7 * DAY_MS, to, rows: 20_000 };
const days = [...demoFlows(week)];
const rows = days.reduce((sum, { count }) => sum + count, 0);

const text = (bytes: Uint8Array, row: number) =>
  formatAddress(BigInt(`0x${Buffer.from(bytes).toString("hex", row * ADDRESS_BYTES, (row + 1) * ADDRESS_BYTES)}`));
function* each(batches: readonly FlowRows[]) {
  for (const batch of batches)
    for (let row = 0; row < batch.count; row++)
      yield {
        src: text(batch.src, row),
        dst: text(batch.dst, row),
        dstPort: batch.dstPort[row]!,
        bytes: Number(batch.bytes[row]),
        at: batch.windowStart[row]!,
        end: batch.windowStart[row]! + FLOW_WINDOW_MS,
      };
}

test("the same options give the same flows, another seed gives others", () => {
  const small = { ...week, rows: 500 };
  expect([...demoFlows(small)]).toEqual([...demoFlows(small)]);
  expect([...demoFlows({ ...small, seed: 8 })]).not.toEqual([...demoFlows(small)]);
});

test("about as many rows as requested, in full minutes of the range, one day at a time", () => {
  expect(rows).toBeGreaterThan(19_000);
  expect(rows).toBeLessThan(22_000);
  for (const batch of days) {
    const ends = Array.from(batch.windowStart, (start) => start + FLOW_WINDOW_MS);
    expect(new Set(ends.map(startOfDay)).size).toBe(1);
    for (const end of ends) expect(end % FLOW_WINDOW_MS).toBe(0);
    expect(Math.min(...ends)).toBeGreaterThan(week.from);
    expect(Math.max(...ends)).toBeLessThanOrEqual(to);
  }
  expect([...demoFlows({ ...week, rows: 0, from: to - 60_000 })]).toEqual([]);
});

test("there is more traffic by day than at night", () => {
  const hour = (at: number) => new Date(at).getUTCHours();
  const all = [...each(days)].filter(({ at }) => new Date(at).getUTCDay() === 3);
  const noon = all.filter(({ at }) => hour(at) === 11 || hour(at) === 12).length;
  const night = all.filter(({ at }) => hour(at) === 0 || hour(at) === 23).length;
  expect(noon).toBeGreaterThan(3 * night);
});

test("an exfiltration and the traffic of the scenarios are included", () => {
  const exfiltrated = [...each(days)].filter(({ dst }) => dst === "203.0.113.77");
  expect(exfiltrated.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(4e9);
  expect(new Set(exfiltrated.map(({ src }) => src)).size).toBe(1);
  const scanned = [...each(days)].filter(({ src, dst }) => src === "198.51.100.23" && dst === "192.0.2.1");
  expect(new Set(scanned.map(({ dstPort }) => dstPort)).size).toBe(240);
  const intruder = [...each(days)].filter(({ src }) => src === "10.20.3.240");
  expect(new Set(intruder.map(({ dstPort }) => dstPort))).toEqual(new Set([53, 443, 445]));
});

test("addresses inside belong to the site, or to the intruder", () => {
  const { devices, deskPhones, cameras } = makeSite(randomFrom(week.seed));
  const known = new Set([...devices, ...deskPhones, ...cameras].map(({ ip }) => ip));
  const strangers = [...each(days)]
    .flatMap(({ src, dst }) => [src, dst])
    .filter((address) => address.startsWith("10.") && !address.startsWith("10.20.0.") && !known.has(address));
  expect(new Set(strangers)).toEqual(new Set(["10.20.3.240"]));
});
