import { describe, expect, test } from "vitest";
import type { Thread } from "../../lib/thread.ts";
import { CommitNews, EVENT_CHARACTERS_MAX } from "./commit-news.ts";
import type { CommittedRows } from "./columns/follower.ts";
import type { ColumnsApi } from "./columns/worker.ts";
import type { Prepared } from "./journal/group.ts";

const DAY = 0;

function prepared(seq: number, characters: number): Prepared {
  const raw = { text: "x".repeat(characters) };
  const draft = { type: "t", source: "custom", severity: "info", class: "security", timestampMs: seq, raw } as const;
  const text = JSON.stringify(raw);
  return { id: "", text, seq, day: DAY, ts: seq, words: "", token: null, draft: { ...draft, enrichment: {} } };
}

/** What the columns are told of these groups: the numbers of events, and whether their rows came along. */
function toldOf(...groups: Prepared[][]): [number, number, boolean][] {
  const told: CommittedRows[] = [];
  const columns = {
    callWith: (_: unknown, __: string, rows: CommittedRows[]) => Promise.resolve(void told.push(...rows)),
  } as unknown as Thread<ColumnsApi>;
  const news = new CommitNews(columns);
  for (const group of groups) news.add(DAY, group);
  news.tell();
  return told.map(({ firstSeq, lastSeq, packed }) => [firstSeq, lastSeq, packed !== undefined]);
}

describe("news of commits", () => {
  test("carry the rows of ordinary groups, and leave large events for the columns to read", () => {
    const groups = [[prepared(1, 10), prepared(2, 10)], [prepared(3, EVENT_CHARACTERS_MAX)], [prepared(4, 10)]];
    expect(toldOf(...groups)).toEqual([
      [1, 2, true],
      [3, 3, false],
      [4, 4, true],
    ]);
  });

  test("leave a group for the columns to read that is large as a whole", () => {
    const group = (first: number, count: number) =>
      Array.from({ length: count }, (_, i) => prepared(first + i, EVENT_CHARACTERS_MAX / 2));
    expect(toldOf(group(1, 20), group(21, 40), group(61, 1))).toEqual([
      [1, 20, true],
      [21, 60, false],
      [61, 61, true],
    ]);
  });
});
