import { describe, expect, test } from "vitest";
import type { AlertFilters } from "../../data/alerts.ts";
import type { Alert } from "../../data/client.ts";
import { alertLike } from "./alert.fixture.ts";
import { isBefore, matches } from "./matches.ts";

const CASES: [AlertFilters, Partial<Alert>, boolean][] = [
  [{}, {}, true],
  [{ status: ["open"] }, { status: "resolved" }, false],
  [{ severity: ["critical", "high"] }, {}, true],
  [{ severity: ["low"] }, {}, false],
  [{ rule_name: ["access.door_forced"] }, {}, true],
  [{ source: ["custom"] }, {}, false],
  [{ assignee: ["Eva@example.com"] }, { assignee: "eva@EXAMPLE.com" }, true],
  [{ assignee: ["none"] }, {}, true],
  [{ assignee: ["none"] }, { assignee: "eva@example.com" }, false],
  [{ entity: ["door:loading dock"] }, {}, true],
  [{ entity: ["Loading Dock"] }, {}, true],
  [{ entity: ["user:loading dock"] }, {}, false],
  [{ tag: ["VIP"] }, { tags: ["vip"] }, true],
  [{ tag: ["vip"] }, {}, false],
  [{ event_id: ["evt_1"] }, {}, false],
  [{ search: "dock forc" }, {}, true],
  [{ search: "dock window" }, {}, false],
  [{ from: "2026-11-15T08:05:00Z", to: "2026-11-15T08:06:00Z" }, {}, true],
  [{ from: "2026-11-15T08:11:00Z" }, {}, false],
  [{ to: "2026-11-15T08:00:00Z" }, {}, false],
  [{ time: "created", from: "2026-11-15T08:10:01Z" }, {}, true],
  [{ time: "created", to: "2026-11-15T08:10:00Z" }, {}, false],
];

test.each(CASES)("filters %j and an alert with %j: %s", (filters, differences, expected) =>
  expect(matches(alertLike(differences), filters)).toBe(expected),
);

describe("the order of a list", () => {
  test("has the worst first", () => {
    const [worse, better] = [alertLike({ id: "alt_1", severity: "critical" }), alertLike({ id: "alt_2" })];
    expect([isBefore(worse, better, "severity"), isBefore(better, worse, "severity")]).toEqual([true, false]);
  });
  test("has the newest first among equals", () => {
    const [older, newer] = [alertLike({ id: "alt_1" }), alertLike({ id: "alt_2" })];
    expect(isBefore(newer, older, "event_count")).toBe(true);
  });
});
