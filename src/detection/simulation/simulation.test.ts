import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Event } from "../../model/event.ts";
import { isSameIncident, type Finding } from "../../model/finding.ts";
import type { Rule } from "../../model/rule.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { conditions, drafts } from "../../store/testing/arbitrary-events.ts";
import { openStore } from "../../store/open-store.ts";
import { QueryRefused } from "../../store/ports/store-errors.ts";
import type { Store } from "../../store/ports/store.ts";
import { rulesOf, START_MS } from "../testing/arbitrary-rules.ts";
import { DetectionEngine } from "../detection-engine.ts";
import { estimateFalsePositives, simulate } from "./simulation.ts";

const HOUR_MS = 3_600_000;
const range = { fromMs: START_MS, toMs: START_MS + 2 * HOUR_MS };
const never = new AbortController().signal;
const dataDir = mkdtempSync(join(tmpdir(), "tocsin-simulate-"));
let store: Store;
let events: Event[];

beforeAll(async () => {
  store = await openStore({
    dataDir,
    platform: "platform",
    indexPrefix: "tocsin",
    registry: new Registry(),
    log: pino({ level: "silent" }),
    now: () => START_MS,
  });
  // Some lie outside the range, and many share their time.
  const sample = fc
    .sample(drafts(START_MS - HOUR_MS / 2, START_MS + 2.5 * HOUR_MS), { numRuns: 300, seed: 3 })
    .map((draft, i) => ({
      ...draft,
      timestampMs: i % 3 === 0 ? draft.timestampMs - (draft.timestampMs % 60_000) : draft.timestampMs,
    }));
  const stored = await store.events.append(sample.map((draft) => ({ draft })));
  events = stored
    .map(({ text }) => parseExact(text) as Event)
    .sort((a, b) => (a.timestamp < b.timestamp || (a.timestamp === b.timestamp && a.id < b.id) ? -1 : 1));
});
afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const run = (rule: Rule, over = range) => simulate(rule, over, { store, now: () => over.toMs, signal: never });

/** The alerts of live detection for these events in order of time. */
function detect(rule: Rule): { matches: number; alerts: number; counted: number } {
  let now = 0;
  const engine = new DetectionEngine({ now: () => now });
  // Neither knows events from before the range.
  engine.setRule({ ...rule, activeAfter: `evt_${range.fromMs.toString(16).padStart(12, "0")}${"0".repeat(20)}` });
  const spans = new Map<string, { firstEventMs: number; lastEventMs: number }>();
  let [matches, alerts, counted] = [0, 0, 0];
  const deduplicate = (findings: readonly Finding[]) => {
    for (const { dedupKey, dedupMs, firstEventMs, lastEventMs, eventCount } of findings) {
      const known = spans.get(dedupKey);
      counted += eventCount;
      if (known && isSameIncident(known, { firstEventMs, lastEventMs }, dedupMs)) {
        known.firstEventMs = Math.min(known.firstEventMs, firstEventMs);
        known.lastEventMs = Math.max(known.lastEventMs, lastEventMs);
      } else {
        alerts++;
        spans.set(dedupKey, { firstEventMs, lastEventMs });
      }
    }
  };
  for (const event of events) {
    now = Date.parse(event.timestamp);
    if (now < range.fromMs || now >= range.toMs) continue;
    deduplicate(engine.tick(now).findings);
    const outcome = engine.process([event]);
    matches += outcome.matches.reduce((sum, { timesMs }) => sum + timesMs.length, 0);
    deduplicate(outcome.findings);
  }
  deduplicate(engine.tick(range.toMs).findings);
  return { matches, alerts, counted };
}

const randomRule = rulesOf(conditions()).map(([first]) => first!);
const absent = fc
  .tuple(randomRule, fc.constantFrom("1m", "5m", "30m"), fc.constantFrom(null, "raw.src_ip", "source", "raw.list"))
  .map(([rule, absence, groupBy]) => ({ ...rule, window: null, threshold: null, sequence: null, absence, groupBy }));
const rules = fc.oneof({ weight: 4, arbitrary: randomRule }, { weight: 1, arbitrary: absent }).map((rule): Rule => ({
  ...rule,
  id: "rule_1",
  name: "test.rule",
  exceptions: rule.exceptions.map((one) => ({ ...one, expiresAt: null })),
}));

test("a simulation counts the matches and the alerts of live detection", async () => {
  let fired = 0;
  await fc.assert(
    fc.asyncProperty(rules, async (rule) => {
      const live = detect(rule);
      const simulated = await run(rule);
      if (live.alerts > 1) fired++;
      expect({ matches: simulated.matches, alerts: simulated.alerts }).toEqual({
        matches: live.matches,
        alerts: live.alerts,
      });
      expect(simulated.byDay.reduce((sum, { matches }) => sum + matches, 0)).toBe(live.matches);
    }),
    { numRuns: 100, seed: 6 },
  );
  // The test must not pass vacuously.
  expect(fired).toBeGreaterThan(15);
});

test("a simulation counts the alerts of live detection if events of several groups share a deduplication key", async () => {
  const rule = plainRule({
    conditions: [{ field: "raw", exists: true }],
    window: "10m",
    threshold: { count: 2, group_by: "raw.list" },
    dedup: { period: "1s", by: ["raw.src_ip"] },
  });
  const { alerts } = await run(rule);
  expect(alerts).toBe(detect(rule).alerts);
  expect(alerts).toBeGreaterThan(10);
});

describe("a simulation", () => {
  test("shows the newest matches, newest first, as they are stored", async () => {
    const { matches, sampleEvents } = await run(plainRule({ conditions: [{ field: "type", equals: "dns" }] }));
    const wanted = events
      .filter(
        ({ type, timestamp }) =>
          type === "dns" && Date.parse(timestamp) >= range.fromMs && Date.parse(timestamp) < range.toMs,
      )
      .reverse();
    expect(matches).toBe(wanted.length);
    expect(sampleEvents.map((text) => parseExact(text) as Event)).toEqual(wanted.slice(0, 10));
  });

  test("without matches returns zeros for every day of the range", async () => {
    const over = { fromMs: START_MS - 2 * DAY_MS, toMs: START_MS - DAY_MS };
    expect(await run(plainRule({ conditions: [{ field: "type", equals: "nowhere" }] }), over)).toEqual({
      matches: 0,
      sampleEvents: [],
      alerts: 0,
      alertsPerDay: 0,
      falsePositives: "low",
      byDay: [
        { day: "2026-11-13", matches: 0, alerts: 0 },
        { day: "2026-11-14", matches: 0, alerts: 0 },
      ],
    });
  });

  test("ignores events of an exception that has not expired", async () => {
    const conditions = [{ field: "type", in: ["dns", "motion"] }];
    const exception = {
      id: "exc_1",
      conditions: [{ field: "type", equals: "dns" }],
      reason: "ours",
      author: "me",
      createdAt: 0,
    };
    const count = async (exceptions: Rule["exceptions"]) => (await run(plainRule({ conditions, exceptions }))).matches;
    const all = await count([]);
    expect(await count([{ ...exception, expiresAt: range.toMs - 1 }])).toBe(all);
    expect(await count([{ ...exception, expiresAt: null }])).toBeLessThan(all);
  });

  test("divides its alerts by the days of the range", async () => {
    const rule = plainRule({ conditions: [{ field: "raw", exists: true }], dedup: { period: "1m", by: null } });
    const { alerts, alertsPerDay } = await run(rule);
    expect(alertsPerDay).toBeCloseTo(alerts * 12, 1);
    const day = startOfDay(START_MS);
    const whole = await run(rule, { fromMs: day, toMs: day + DAY_MS });
    expect(whole.alertsPerDay).toBe(whole.alerts);
    expect(whole.byDay).toEqual([{ day: "2026-11-15", matches: whole.matches, alerts: whole.alerts }]);
  });

  test("stops when the caller disconnects", async () => {
    const gone = new AbortController();
    const running = simulate(plainRule({ conditions: [{ field: "raw", exists: true }] }), range, {
      store,
      now: () => range.toMs,
      signal: gone.signal,
    });
    gone.abort(new Error("hung up"));
    await expect(running).rejects.toThrow("hung up");
    expect((await run(plainRule({ conditions: [{ field: "raw", exists: true }] }))).matches).toBeGreaterThan(0);
  });

  test("with a condition that the columns do not support is refused on the rule", async () => {
    const refused = run(plainRule({ conditions: [{ field: "id", contains: "0" }] }));
    await expect(refused).rejects.toThrow(QueryRefused);
    await expect(refused).rejects.toHaveProperty("field", "rule");
  });
});

describe("the estimate of false positives", () => {
  const none = { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 };
  test.each([
    [0, 0, none, "low"],
    [1, 0.2, none, "low"],
    [1.1, 0.2, none, "low"],
    [1.1, 0.3, none, "medium"],
    [11, 0, none, "medium"],
    [11, 0.7, none, "high"],
    [11, 0.3, none, "medium"],
    [11, 0.3, { ...none, false_positive: 2, true_positive: 2 }, "high"],
    [0.1, 0, { ...none, false_positive: 9 }, "medium"],
    [11, 0, { ...none, true_positive: 9 }, "low"],
    [0.1, 0, { ...none, benign: 2 }, "low"],
    [0.1, 0, { ...none, duplicate: 100 }, "low"],
  ] as const)(
    "%s alerts a day, %s from known-good sources, resolved %j: %s",
    (alertsPerDay, knownGood, resolutions, wanted) => {
      expect(estimateFalsePositives({ alertsPerDay, knownGood, resolutions })).toBe(wanted);
    },
  );
});
