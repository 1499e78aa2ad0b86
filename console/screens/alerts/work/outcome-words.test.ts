import { expect, test } from "vitest";
import type { Change } from "../../../data/alert-changes.ts";
import type { AlertDetail } from "../../../data/client.ts";
import { alertLike } from "../alert.fixture.ts";
import { afterChange, bulkWords, conflictWords, doneWords, leftWords, undoneWords } from "./outcome-words.ts";

const NOW_MS = Date.parse("2026-11-15T09:00:00Z");
const entry = (kind: "resolved" | "commented", at: string) => ({ id: at, kind, at, actor: "eva" });

test("who was faster is said with the time", () => {
  const timeline = [entry("resolved", "2026-11-15T08:59:56Z"), entry("commented", "2026-11-15T08:59:58Z")];
  expect(conflictWords({ timeline } as unknown as AlertDetail, NOW_MS)).toBe(
    "Resolved 4 s ago by eva; nothing was changed",
  );
});

test("a conflict without a move says the status", () => {
  expect(conflictWords({ timeline: [], status: "resolved" } as unknown as AlertDetail, NOW_MS)).toContain(
    "is resolved",
  );
});

test("many alerts: what was done, refused and left", () => {
  const failed = [{ id: "alt_1", message: "the alert is resolved" }];
  const result = { succeeded: [], succeededCount: 10_000, failed, failedCount: 1, remaining: 5, undoIds: [] };
  expect(bulkWords({ action: "acknowledge" }, result)).toBe(
    "Acknowledged 10,000 alerts; 1 was refused: the alert is resolved; 5 are left, do it again for those",
  );
});

test("what was taken back: how many, who is left alone, and that a comment stays", () => {
  const result = { succeeded: [], succeededCount: 12, failed: [], failedCount: 0, remaining: 0, undoIds: [] };
  expect(undoneWords({ action: "reopen" }, result)).toBe("Taken back for 12 alerts");
  expect(undoneWords({ action: "resolve", resolution: "benign", comment: "x" }, { ...result, failedCount: 2 })).toBe(
    "Taken back for 12 alerts; 2 stay as they are, because somebody has changed them since. The comment stays in the timeline",
  );
  expect(undoneWords({ action: "reopen" }, { ...result, succeededCount: 0, failedCount: 1 })).toBe(
    "Nothing was taken back; 1 stays as it is, because somebody has changed it since",
  );
});

test.each<[Change, string]>([
  [{ action: "acknowledge", assignee: "eva@example.com" }, "Acknowledged it for eva@example.com"],
  [{ action: "resolve", resolution: "benign" }, "Resolved it as harmless"],
  [{ action: "reopen" }, "Opened it again"],
  [{ action: "assign", assignee: null }, "Took it from the assignee"],
  [{ action: "comment", comment: "x" }, "Commented on it"],
  [{ action: "tag", tags: ["a", "b"] }, "Tagged it a, b"],
  [{ action: "untag", tags: ["a"] }, "Removed the tag a from it"],
])("%j", (change, words) => expect(doneWords(change, "it")).toBe(words));

test("why a change was not taken back", () => {
  const timeline = [entry("resolved", "2026-11-15T08:59:56Z"), entry("commented", "2026-11-15T08:59:58Z")];
  expect(leftWords({ timeline } as unknown as AlertDetail, NOW_MS)).toBe(
    "Nothing was taken back: the alert was changed 4 s ago by eva",
  );
  expect(leftWords({ timeline: [] } as unknown as AlertDetail, NOW_MS)).toContain("changed since");
});

test("a change of many is shown before the service says so", () => {
  const alert = alertLike({ tags: ["a"], status: "open" });
  expect(afterChange(alert, { action: "acknowledge", assignee: "eva@example.com" })).toMatchObject({
    status: "acknowledged",
    assignee: "eva@example.com",
  });
  expect(afterChange(alert, { action: "tag", tags: ["b", "a"] }).tags).toEqual(["a", "b"]);
  expect(afterChange(alert, { action: "untag", tags: ["a"] }).tags).toEqual([]);
});
