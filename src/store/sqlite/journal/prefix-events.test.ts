import { DatabaseSync } from "node:sqlite";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { gather, gathered, startGathering } from "./prefix-events.ts";
import { WORDS_TABLE, type DayReader } from "./day-file.ts";
import { falling, has, intersect, rising, type SeqSet } from "./seq-set.ts";

/** Past 32 bits. */
const FAR = 2 ** 33;

/** A full-text index in memory; the real reader opens a file. */
function indexOf(texts: ReadonlyMap<number, string>): DayReader {
  const db = new DatabaseSync(":memory:");
  db.exec(WORDS_TABLE);
  const insert = db.prepare("INSERT INTO words(rowid, text) VALUES (CAST(? AS INTEGER), ?)");
  db.exec("BEGIN");
  for (const [seq, text] of texts) insert.run(seq, text);
  db.exec("COMMIT");
  db.exec("CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, words, instance)");
  return { sql: (text: string) => db.prepare(text), ensurePostings: () => undefined } as unknown as DayReader;
}

function gatherAll(reader: DayReader, words: readonly string[]): { found: number[]; parts: number } {
  let state = startGathering(words.map((word) => [{ word, isPrefix: true }]));
  for (let parts = 1; ; parts++) {
    // Pause after each statement.
    state = structuredClone(gather(reader, state, () => true));
    const set = gathered(state);
    if (set) return { found: [...rising(set, 0, 2 ** 35)], parts };
  }
}

test("a prefix finds its events one statement at a time, also if most events contain it and if they are far apart", () => {
  const texts = new Map<number, string>();
  for (let i = 0; i < 50_000; i++) texts.set(i < 45_000 ? i * 3 : i * 3 + 2 ** 34, `every only${i}`);
  const reader = indexOf(texts);
  const all = [...texts.keys()];
  const every = gatherAll(reader, ["ev"]);
  expect(every.found).toEqual(all);
  expect(every.parts).toBeGreaterThan(3);
  expect(gatherAll(reader, ["only"]).found).toEqual(all);
  expect(gatherAll(reader, ["only1", "ev"]).found).toEqual(all.filter((seq) => texts.get(seq)!.includes("only1")));
  expect(gatherAll(reader, ["nowhere", "ev"]).found).toEqual([]);
});

test("a set of sequence numbers iterates its members in both directions, and intersects with another", () => {
  const seqs = fc.uniqueArray(fc.oneof(fc.nat(300_000), fc.integer({ min: FAR, max: FAR + 200_000 })));
  const setOf = (list: readonly number[]): SeqSet => {
    const reader = indexOf(new Map(list.map((seq) => [seq, "word"])));
    return gathered(gather(reader, startGathering([[{ word: "word", isPrefix: true }]]), () => false))!;
  };
  fc.assert(
    fc.property(seqs, seqs, (a, b) => {
      const [setA, setB] = [setOf(a), setOf(b)];
      const sorted = [...a].sort((x, y) => x - y);
      expect([...rising(setA, 0, FAR + 200_000)]).toEqual(sorted);
      expect([...falling(setA, 0, FAR + 200_000)]).toEqual(sorted.toReversed());
      const [low = 0, high = 0] = [sorted.at(1), sorted.at(-2)];
      expect([...rising(setA, low, high)]).toEqual(sorted.filter((seq) => seq >= low && seq <= high));
      expect([...falling(setA, low, high)]).toEqual(sorted.filter((seq) => seq >= low && seq <= high).toReversed());
      expect([...rising(intersect(setA, setB), 0, FAR + 200_000)]).toEqual(sorted.filter((seq) => b.includes(seq)));
      for (const seq of b) expect(has(setA, seq)).toBe(a.includes(seq));
    }),
    { numRuns: 20 },
  );
});
