import { expect, test } from "vitest";
import { TextDictionary } from "./text-dictionary.ts";

const encoder = new TextEncoder();

/** Numbers texts in batches, and checks that each number keeps its meaning within the dictionary. */
function numberAll(numbers: TextDictionary, texts: readonly string[], batch: number): number[] {
  const meaning = new Map<number, string>();
  return texts.map((text, i) => {
    if (i % batch === 0) numbers.reserve(batch);
    const bytes = encoder.encode(`..${text}..`);
    const { last } = numbers;
    const number = numbers.numberOf(bytes, 2, bytes.length - 4);
    if (number > last) meaning.set(number, text);
    if (meaning.get(number) !== text) throw new Error(`${number} is ${meaning.get(number)}, not ${text}`);
    return number;
  });
}

test("a text that recurs has the same number", () => {
  const texts = ["a", "", "b", "a", "", "ab", "a\u0000", "é", "a long text, longer than others", "b"];
  const numbers = numberAll(new TextDictionary(), texts, texts.length);
  expect(numbers).toEqual([1, 2, 3, 1, 2, 4, 5, 6, 7, 3]);
});

test("past the limit of distinct texts the numbers start over, and no two texts are confused", () => {
  const numbers = new TextDictionary();
  const texts = Array.from({ length: 400_000 }, (_, i) => `10.0.${i % 200_000}`);
  const assigned = numberAll(numbers, texts, 10_000);
  expect(assigned.reduce((most, number) => Math.max(most, number))).toBe(150_000);
});

test("texts that are too large to be stored get a new number each time", () => {
  const large = "x".repeat(9_000_000);
  const numbers = new TextDictionary();
  expect(numberAll(numbers, [`${large}1`, `${large}2`, "small", `${large}1`, `${large}2`], 10)).toEqual([
    1, 2, 3, 1, 4,
  ]);
  // The large text leaves less than half of the space: with the next texts the numbers start over.
  expect(numberAll(numbers, ["small"], 10)).toEqual([1]);
});
