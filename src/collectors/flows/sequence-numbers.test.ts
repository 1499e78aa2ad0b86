import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SequenceTracker } from "./sequence-numbers.ts";

/** The loss that remains after packets of one unit each. */
const lostOf = (numbers: readonly number[]) => {
  const sequence = new SequenceTracker();
  return numbers.reduce((lost, number) => lost + sequence.observe(number >>> 0, 1), 0);
};

describe("sequence numbers", () => {
  test.each([
    ["in order", [1, 2, 3], 0],
    ["with a gap", [1, 2, 5, 6], 2],
    ["two in reverse order", [101, 103, 102, 104], 0],
    ["one overtaken by several", [1, 3, 4, 5, 2, 6], 0],
    ["a gap that one late packet fills in part", [1, 5, 3, 6], 2],
    ["the same packet twice", [1, 2, 2, 3], 0],
    ["a packet that fills a gap and arrives twice", [1, 3, 2, 2, 4], 0],
    ["across the wrap-around", [2 ** 32 - 2, 0, 2 ** 32 - 1, 1], 0],
    ["an exporter that restarted", [5000, 5001, 1, 2, 3, 4, 5, 7], 1],
    ["a jump too large for a loss", [1, 5_000_000, 5_000_001], 0],
  ])("%s", (_, numbers, lost) => expect(lostOf(numbers)).toBe(lost));

  test("several units in one packet count individually", () => {
    const sequence = new SequenceTracker();
    expect(sequence.observe(0, 10)).toBe(0);
    expect(sequence.observe(30, 10)).toBe(20);
    expect(sequence.observe(10, 10), "late").toBe(-10);
    expect(sequence.observe(20, 10), "later").toBe(-10);
    expect(sequence.observe(40, 10)).toBe(0);
  });

  test("packets swapped with their neighbours are not lost", () => {
    const swapped = fc.array(fc.boolean(), { minLength: 2, maxLength: 60 }).map((swaps) => {
      const numbers = swaps.map((_, i) => i + 1);
      for (let i = 1; i + 1 < numbers.length; i++) {
        if (!swaps[i]) continue;
        [numbers[i], numbers[i + 1]] = [numbers[i + 1]!, numbers[i]!];
        i++;
      }
      return numbers;
    });
    fc.assert(
      fc.property(swapped, (numbers) => {
        expect(lostOf(numbers)).toBe(0);
      }),
    );
  });
});
