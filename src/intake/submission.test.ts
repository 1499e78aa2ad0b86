import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clockBounds } from "../model/clock.ts";
import { checkSubmission, isSubmission, submissionSchema } from "./submission.ts";

const now = Date.UTC(2026, 10, 15, 12);
const bounds = clockBounds(now, 7);
const good = { type: "login_failure", source: "custom", data: { user: "alice" } };
const faultsOf = (value: unknown) => checkSubmission(value, bounds).faults?.map(({ field }) => field);

/** Valid and nearly valid submissions: every field valid, invalid or missing, and unknown fields. */
const almostSubmission = fc
  .record(
    {
      type: fc.oneof(
        fc.constantFrom(
          "login_failure",
          "a b/c:d.e-f",
          "Größe",
          "",
          " x",
          "x".repeat(128),
          "x".repeat(129),
          "a\n",
          "a\0",
        ),
        fc.string({ unit: "binary" }),
        fc.jsonValue(),
      ),
      source: fc.oneof(
        { weight: 5, arbitrary: fc.constant("custom") },
        fc.constant("platform_network"),
        fc.jsonValue(),
      ),
      severity: fc.oneof(fc.constantFrom("info", "critical", "CRITICAL", "", null), fc.jsonValue()),
      class: fc.oneof(fc.constantFrom("security", "audit", "Audit"), fc.jsonValue()),
      timestamp: fc.oneof(
        fc.constantFrom("2026-11-15", "2026-11-15T10:00:00Z", "2026-11-15T10:00:00", "2026-02-30", ""),
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        fc.jsonValue(),
      ),
      data: fc.oneof(fc.constantFrom({}, [], null, JSON.parse('{"__proto__":1}')), fc.jsonValue()),
    },
    { requiredKeys: [] },
  )
  .chain((value) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(JSON.stringify(value)) },
      fc
        .tuple(fc.constantFrom("extra", "__proto__", "constructor", "toString", ""), fc.jsonValue())
        .map(([key, extra]) => `{${JSON.stringify(key)}:${JSON.stringify(extra)},${JSON.stringify(value).slice(1)}`)
        .map((text) => text.replace(/,}$/, "}")),
      fc.json(),
    ),
  )
  .map((text) => JSON.parse(text) as unknown);

describe("a submission", () => {
  test("passes the fast check exactly if it passes the schema", () => {
    fc.assert(
      fc.property(almostSubmission, (value) => {
        expect(isSubmission(value)).toBe(submissionSchema.safeParse(value).success);
      }),
      { numRuns: 5000 },
    );
  });

  test("becomes either a draft or a list of faults", () => {
    fc.assert(
      fc.property(almostSubmission, (value) => {
        const { draft, faults } = checkSubmission(value, bounds);
        if (draft) expect(faults).toBeUndefined();
        else expect(faults.length).toBeGreaterThan(0);
      }),
    );
  });

  test("with only the required fields gets severity info, class security and the current time", () => {
    expect(checkSubmission(good, bounds).draft).toEqual({
      type: "login_failure",
      source: "custom",
      severity: "info",
      class: "security",
      timestampMs: now,
      raw: { user: "alice" },
      enrichment: {},
    });
  });

  test("keeps its data unchanged, __proto__ included", () => {
    const value = JSON.parse('{"type":"x","source":"custom","data":{"__proto__":{"admin":true}}}') as { data: object };
    expect(checkSubmission(value, bounds).draft?.raw).toBe(value.data);
  });

  test("has all its faults reported at once", () => {
    const value = { type: " x", source: "platform_network", severity: "bad", class: 1, timestamp: "soon", extra: 1 };
    expect(faultsOf(value)?.sort()).toEqual(["class", "data", "extra", "severity", "source", "timestamp", "type"]);
    expect(faultsOf([])).toEqual([""]);
    expect(faultsOf({ ...good, severity: "bad", timestamp: "2100-01-01" })).toEqual(["severity", "timestamp"]);
  });

  test("may be at most 5 minutes ahead, and not before the retention period", () => {
    const at = (ms: number) => ({ ...good, timestamp: new Date(ms).toISOString() });
    expect(faultsOf(at(now + 300_000))).toBeUndefined();
    expect(faultsOf(at(now + 300_001))).toEqual(["timestamp"]);
    const earliest = Date.UTC(2026, 10, 8);
    expect(faultsOf(at(earliest))).toBeUndefined();
    expect(faultsOf(at(earliest - 1))).toEqual(["timestamp"]);
    expect(checkSubmission(at(earliest - 1), bounds).faults![0]!.message).toContain("2026-11-08T00:00:00.000Z");
  });
});
