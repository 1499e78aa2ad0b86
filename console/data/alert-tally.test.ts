import { expect, test } from "vitest";
import { tallied, type Tally } from "./alert-tally.ts";
import type { AlertFilters } from "./alerts.ts";

const TALLIES: Tally[] = [
  {
    status: "open",
    bySeverity: new Map([
      ["critical", 1],
      ["high", 2],
      ["low", 4],
    ]),
    byAssignee: new Map([["eva@example.com", 3]]),
  },
  { status: "resolved", bySeverity: new Map([["high", 8]]), byAssignee: new Map([["eva@example.com", 5]]) },
];

test.each<[AlertFilters, number | undefined]>([
  [{}, 15],
  [{ status: ["open"], severity: ["critical", "high"] }, 3],
  [{ status: ["open", "resolved"] }, 15],
  [{ status: ["acknowledged"] }, 0],
  [{ status: ["open"], assignee: ["Eva@example.com"], time: "overlap", from: "2026-11-10T00:00:00Z" }, 3],
  [{ assignee: ["none"] }, undefined],
  [{ severity: ["high"], assignee: ["eva@example.com"] }, undefined],
  [{ search: "dock" }, undefined],
])("%j", (filters, count) => expect(tallied(TALLIES, filters)).toBe(count));
