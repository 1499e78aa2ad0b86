import { expect, test } from "vitest";
import type { TimelineEntry } from "../../../data/client.ts";
import { entryWords, lastMove } from "./timeline-words.ts";

const entry = (differences: Partial<TimelineEntry>): TimelineEntry => ({
  id: "1",
  at: "2026-11-15T08:00:00Z",
  kind: "created",
  actor: "eva",
  ...differences,
});

test.each<[Partial<TimelineEntry>, string]>([
  [{ kind: "created", count: 3 }, "raised it from 3 events"],
  [{ kind: "created", count: 0 }, "raised it because nothing came"],
  [{ kind: "events_added", count: 1, severity: "critical" }, "added 1 event, which made it critical"],
  [{ kind: "acknowledged", assignee: null }, "acknowledged it"],
  [{ kind: "assigned", assignee: "eva@example.com" }, "gave it to eva@example.com"],
  [{ kind: "assigned", assignee: null }, "took it from its assignee"],
  [{ kind: "tagged", added: ["a", "b"], removed: ["c"] }, "tagged it a, b and removed the tag c"],
  [{ kind: "resolved", resolution: "false_positive" }, "resolved it as a false positive"],
  [{ kind: "notified", channel: "slack", outcome: "failed", error: "timeout" }, "could not notify slack (timeout)"],
  [{ kind: "notified", channel: "slack", outcome: "sent" }, "notified slack"],
])("%j", (differences, words) => expect(entryWords(entry(differences))).toBe(words));

test("the last move is the last change of status", () => {
  const timeline = [entry({ id: "1", kind: "resolved" }), entry({ id: "2", kind: "commented" })];
  expect(lastMove(timeline)?.id).toBe("1");
});
