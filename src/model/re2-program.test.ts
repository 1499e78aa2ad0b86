import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { ASSERTION, INSTRUCTION, programOf } from "./re2-program.ts";

// Fails when a release of re2js changes the private fields that re2-program.ts reads.

const { ALT, CAPTURE, EMPTY_WIDTH, MATCH, RUNE, RUNE1, RUNE_ANY, RUNE_ANY_NOT_NEWLINE } = INSTRUCTION;

const opsOf = (source: string): number[] => programOf(RE2JS.compile(source)).instructions.map(({ op }) => op);

test.each<[source: string, op: number]>([
  ["a", RUNE1],
  ["[a-c]", RUNE],
  [".", RUNE_ANY_NOT_NEWLINE],
  ["(?s:.)", RUNE_ANY],
  ["ab|cd", ALT],
  ["(a)", CAPTURE],
  ["^a", EMPTY_WIDTH],
  ["a", MATCH],
])("re2js compiles %s to a program with instruction %d", (source, op) => {
  expect(opsOf(source)).toContain(op);
});

test.each<[source: string, assertion: number]>([
  ["(?m:^)a", ASSERTION.BEGIN_LINE],
  ["a(?m:$)", ASSERTION.END_LINE],
  ["\\Aa", ASSERTION.BEGIN_TEXT],
  ["a\\z", ASSERTION.END_TEXT],
  ["\\ba", ASSERTION.WORD_BOUNDARY],
  ["\\Ba", ASSERTION.NO_WORD_BOUNDARY],
])("re2js marks the assertion in %s with bit %d", (source, assertion) => {
  const { instructions } = programOf(RE2JS.compile(source));
  expect(instructions.filter(({ op }) => op === EMPTY_WIDTH).map(({ arg }) => arg)).toEqual([assertion]);
});

test("a program runs from its start over successors to MATCH", () => {
  const { instructions, start } = programOf(RE2JS.compile("ab"));
  const runes: number[] = [];
  let at = start;
  for (let steps = 0; steps < instructions.length && instructions[at]!.op !== MATCH; steps++) {
    const {
      op,
      out,
      runes: [rune],
    } = instructions[at]!;
    if (op === RUNE1) runes.push(rune!);
    at = out;
  }
  expect(runes).toEqual([97, 98]);
  expect(instructions[at]!.op).toBe(MATCH);
});

test("an alternative has two successors", () => {
  const { instructions } = programOf(RE2JS.compile("ab|cd"));
  const { out, arg } = instructions.find(({ op }) => op === ALT)!;
  expect([instructions[out]!.runes[0], instructions[arg]!.runes[0]]).toEqual([97, 99]);
});

test("an instruction says which characters it consumes", () => {
  const { instructions } = programOf(RE2JS.compile("[b-dx]"));
  const instruction = instructions.find(({ op }) => op === RUNE)!;
  expect(["a", "b", "d", "e", "x"].map((char) => instruction.matchRune(char.charCodeAt(0)))).toEqual([
    false,
    true,
    true,
    false,
    true,
  ]);
});

test("class bounds separate the characters that a pattern distinguishes", () => {
  const { classBounds } = programOf(RE2JS.compile("[b-d]"));
  expect(classBounds).toBeInstanceOf(Int32Array);
  expect([...classBounds]).toEqual(expect.arrayContaining(["b".charCodeAt(0), "e".charCodeAt(0)]));
});
