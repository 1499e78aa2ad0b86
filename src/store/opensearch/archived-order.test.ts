import { expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { writtenOrder, type ShardNumbers } from "./archived-order.ts";
import { keyOf, type ShardProgress } from "./event-shards.ts";

const NOW = Date.UTC(2026, 10, 18);
const MINUTE = 60_000;

const shard = (number: number, newest: number): ShardProgress => ({
  index: `i-${number}`,
  incarnation: `u-${number}`,
  shard: 0,
  checkpoint: newest,
  newest,
});

/** Writes these times of arrival into shards and cuts them at the marks; returns rows as shard, first and last number. */
async function ordered(
  times: readonly (readonly number[])[],
  marks: readonly (readonly number[])[],
  { processed = marks.length, fromMs = 0 } = {},
) {
  const shards = times.map((own, nth) => shard(nth, own.length - 1));
  const ends = [...marks, times.map((own) => own.length - 1)].map(
    (last) => new Map(shards.map((each, nth) => [keyOf(each), last[nth]!])),
  );
  const read = async (on: ShardProgress, first: number, last: number, since: number) => {
    const own = times[shards.indexOf(on)]!.map((arrivedMs, number): ShardNumbers => ({ number, arrivedMs }));
    // A page has two.
    return own
      .slice(first, last + 1)
      .filter(({ arrivedMs }) => arrivedMs >= since)
      .slice(0, 2);
  };
  const { rows, endOf } = await writtenOrder({ shards, ends, processed, fromMs, now: NOW, read });
  return {
    rows: rows.map(({ index, first, last }) => `${index} ${first}-${last}`),
    times: rows.map(({ atMs }) => atMs),
    endOf,
  };
}

test("rows follow the times of arrival between shards, and the numbers within one", async () => {
  const at = (minutes: number) => NOW - DAY_MS + minutes * MINUTE;
  const found = await ordered(
    [
      [at(0), at(5), at(5), at(5)],
      [at(2), at(7)],
    ],
    [],
  );
  expect(found.rows).toEqual(["i-0 0-0", "i-1 0-0", "i-0 1-1", "i-0 2-3", "i-1 1-1"]);
  expect(found.times).toEqual([at(0), at(2), at(5), at(5), at(7)]);
});

test("no row contains events of both sides of a mark", async () => {
  const at = NOW - DAY_MS;
  const found = await ordered(
    [
      [at, at, at],
      [at, at],
    ],
    [
      [0, -1],
      [1, 1],
    ],
  );
  expect(found.rows).toEqual(["i-0 0-0", "i-0 1-1", "i-1 0-1", "i-0 2-2"]);
  expect(found.endOf).toEqual([1, 3, 4]);
});

test("processed events from before are left out; others stay and are not forgotten soon", async () => {
  const old = NOW - 30 * DAY_MS;
  const found = await ordered([[old, NOW - DAY_MS, old, old]], [[1]], { fromMs: NOW - 8 * DAY_MS });
  expect(found.rows).toEqual(["i-0 1-1", "i-0 2-3"]);
  expect(found.times.every((ms) => ms > NOW - 7 * DAY_MS)).toBe(true);
  expect(found.endOf[0]).toBe(1);
});
