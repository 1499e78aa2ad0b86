import * as fc from "fast-check";
import { expect, test } from "vitest";
import { SEVERITIES } from "../model/event.ts";
import { someEvidence } from "./evidence.fixture.ts";
import type { AlertEvidence } from "./evidence.ts";
import { scoreAlert } from "./scorer.ts";

const scoreOf = (more: Partial<AlertEvidence>, alert: Partial<AlertEvidence["alert"]> = {}) =>
  scoreAlert(someEvidence(more, alert)).threat_score;
const resolved = (right: number, wrong: number, benign = 0) => ({
  resolutions: { true_positive: right, false_positive: wrong, benign, duplicate: 0 },
});

test("the score is the sum of the points of its reasons, between 0 and 100", () => {
  const evidence = fc.record({
    abuseScore: fc.option(fc.integer({ min: 0, max: 100 })),
    lists: fc.subarray(["bad", "tor"]),
    senders: fc.integer({ min: 0, max: 50 }),
    targets: fc.integer({ min: 0, max: 50 }),
    sources: fc.integer({ min: 0, max: 5 }),
    earlierOfRule: fc.nat(5),
    earlierOfGroup: fc.nat(5),
    counts: fc.tuple(fc.nat(20), fc.nat(20), fc.nat(20)),
    severity: fc.constantFrom(...SEVERITIES),
  });
  fc.assert(
    fc.property(evidence, ({ counts, severity, ...more }) => {
      const { threat_score, reasoning, summary } = scoreAlert(
        someEvidence({ ...more, ...resolved(...counts) }, { severity }),
      );
      expect(reasoning).toHaveLength(5);
      const sum = reasoning.reduce((total, reason) => total + Number(/^[+-]\d+/.exec(reason)![0]), 0);
      expect(threat_score).toBe(Math.min(100, Math.max(0, sum)));
      expect(summary.length).toBeLessThanOrEqual(1000);
      expect(summary).toContain(`Threat score ${threat_score} of 100.`);
    }),
  );
});

test("each aggravating fact raises the score, and earlier false positives lower it", () => {
  const plain = scoreOf({});
  const scores = SEVERITIES.map((severity) => scoreOf({}, { severity }));
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
  expect(scoreOf({ abuseScore: 90 })).toBeGreaterThan(scoreOf({ abuseScore: 10 }));
  expect(scoreOf({ lists: ["bad"] })).toBeGreaterThan(plain);
  expect(scoreOf({ senders: 8 })).toBeGreaterThan(plain);
  expect(scoreOf({ targets: 8 })).toBeGreaterThan(plain);
  expect(scoreOf({ sources: 2 })).toBeGreaterThan(plain);
  expect(scoreOf({ earlierOfRule: 0 })).toBeGreaterThan(scoreOf({ earlierOfRule: 3, earlierOfGroup: 0 }));
  expect(scoreOf({ earlierOfRule: 3, earlierOfGroup: 0 })).toBeGreaterThan(
    scoreOf({ earlierOfRule: 3, earlierOfGroup: 3 }),
  );
  expect(scoreOf(resolved(10, 0))).toBeGreaterThan(plain);
  expect(scoreOf(resolved(0, 10))).toBeLessThan(plain);
  expect(scoreOf(resolved(1, 1))).toBe(plain);
});

test("suggestions come from the rule, the reputation and earlier resolutions", () => {
  const rule = {
    id: "r",
    name: "site.x",
    description: "What it is.\n\nAsk the user,\nthen lock the account.",
    tags: [],
  };
  expect(scoreAlert(someEvidence({}, { rule })).suggested_actions).toEqual(["Ask the user, then lock the account."]);
  expect(scoreAlert(someEvidence({ abuseScore: 100 })).suggested_actions).toEqual([
    "Block 192.0.2.17 at the gateway unless it has business here.",
  ]);
  const group = { field: "raw.src_ip", value: "10.0.0.5" };
  expect(scoreAlert(someEvidence({ abuseScore: 100 }, { group })).suggested_actions.join()).not.toContain("Block");
  expect(scoreAlert(someEvidence(resolved(0, 5))).suggested_actions.join()).toContain("exception");
  expect(scoreAlert(someEvidence({})).suggested_actions).toHaveLength(1);
});

test("only a searched group can be new, and a count of one is singular", () => {
  const { reasoning, threat_score } = scoreAlert(
    someEvidence({ earlierOfRule: 250, earlierOfGroup: 0, earlierSearched: 100, senders: 0, targets: 2 }),
  );
  expect(reasoning.slice(2, 4)).toEqual([
    "+1: spread: 0 senders, 2 targets, 1 source of events in the newest events (up to 10)",
    "+0: novelty: 192.0.2.17 is not among the last 100 of 250 alerts of the rule in the 30 days before; the others were not searched",
  ]);
  expect(threat_score).toBe(scoreOf({ earlierOfRule: 250, earlierOfGroup: 3, targets: 2 }));
  expect(scoreAlert(someEvidence({ earlierOfRule: 1, earlierOfGroup: 1 })).reasoning[3]).toContain(
    "1 alert of the rule",
  );
});
