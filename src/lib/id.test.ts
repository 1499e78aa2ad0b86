import { expect, test } from "vitest";
import { greatestId, idMaker, timeOfId } from "./id.ts";

const NOW = Date.parse("2026-11-17T06:59:58.123Z");

test("ids increase while the clock stands still, jumps ahead or goes back", () => {
  let clock = NOW;
  const next = idMaker("alt_", () => clock);
  const ids: string[] = [];
  for (const step of [0, 0, 1000, -3_600_000, 0, 5000]) {
    clock += step;
    for (let i = 0; i < 5000; i++) ids.push(next());
  }
  expect(ids).toEqual([...ids].sort());
  expect(new Set(ids).size).toBe(ids.length);
});

test("ids of a process whose clock is behind are greater than those of an earlier process", () => {
  const earlier = idMaker("alt_", () => NOW);
  const made = Array.from({ length: 10 }, earlier);
  const later = idMaker("alt_", () => NOW - 86_400_000, greatestId(made));
  expect(later() > made.at(-1)!).toBe(true);
});

test("without ids of an earlier process only the clock counts", () => {
  for (const none of [undefined, null]) expect(timeOfId(idMaker("alt_", () => NOW, none)())).toBe(NOW);
  expect(greatestId([])).toBe(null);
});
