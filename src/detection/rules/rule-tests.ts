import { parseTime } from "../../lib/time.ts";
import { isSameIncident, type Finding } from "../../model/finding.ts";
import type { Rule } from "../../model/rule.ts";
import type { RuleTest } from "../../model/rule-test.ts";
import { DetectionEngine } from "../detection-engine.ts";
import { eventsOfTest, waitOfTest } from "./test-events.ts";

// Runs the tests of rules through the detection engine, for the command line and for the API.

export interface TestOutcome {
  readonly test: RuleTest;
  /** Index among the tests of the rule. */
  readonly index: number;
  /** The expected alerts in words: `1 alert with 5 events, titled "Failed logins"`. */
  readonly expected: string;
  /** The raised alerts in words. */
  readonly actual: string;
  /** Deviations from the expected result; empty if the test passes. */
  readonly faults: readonly string[];
}

/** Runs the tests of a rule. A rule that is disabled is tested too. */
export function runRuleTests(rule: Rule, tests: readonly RuleTest[]): TestOutcome[] {
  return tests.map((test, index) => {
    const alerts = alertsOf(rule, test);
    const faults = compare(test, alerts);
    return { test, index, expected: wordsOfExpected(test), actual: wordsOfActual(test, alerts), faults };
  });
}

interface TestAlert {
  readonly title: string;
  readonly dedupKey: string;
  eventCount: number;
  firstEventMs: number;
  lastEventMs: number;
}

/** The alerts of a test. Each event arrives when it happens. */
function alertsOf(rule: Rule, test: RuleTest): TestAlert[] {
  let now = 0;
  const engine = new DetectionEngine({ now: () => now });
  engine.setRule({ ...rule, enabled: true, activeAfter: null, endedExceptions: [] });
  const alerts: TestAlert[] = [];
  for (const event of eventsOfTest(test, rule)) {
    now = Math.max(now, parseTime(event.timestamp)!);
    addFindings(alerts, engine.tick(now).findings);
    addFindings(alerts, engine.process([event]).findings);
  }
  now += waitOfTest(test);
  addFindings(alerts, engine.tick(now).findings);
  return alerts;
}

function addFindings(alerts: TestAlert[], findings: readonly Finding[]): void {
  for (const finding of findings) {
    const { title, dedupKey, eventCount, firstEventMs, lastEventMs } = finding;
    const known = alerts.findLast(
      (alert) => alert.dedupKey === dedupKey && isSameIncident(alert, finding, finding.dedupMs),
    );
    if (!known) {
      alerts.push({ title, dedupKey, eventCount, firstEventMs, lastEventMs });
      continue;
    }
    known.eventCount += eventCount;
    known.firstEventMs = Math.min(known.firstEventMs, firstEventMs);
    known.lastEventMs = Math.max(known.lastEventMs, lastEventMs);
  }
}

/** Alert titles that a failed test shows: a rule that matches too much has thousands. */
const TITLES_SHOWN_MAX = 20;

function titlesOf(alerts: readonly TestAlert[]): string {
  const titles = alerts.slice(0, TITLES_SHOWN_MAX).map(({ title }) => `"${title}"`);
  const more = alerts.length - titles.length;
  return [...titles, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}

const counted = (count: number, noun: string) => `${count === 0 ? "no" : count} ${noun}${count === 1 ? "" : "s"}`;
const eventsIn = (alerts: readonly TestAlert[]) => alerts.reduce((sum, alert) => sum + alert.eventCount, 0);

function wordsOfExpected({ alerts, event_count, title }: RuleTest): string {
  return (
    counted(alerts, "alert") +
    (event_count === undefined ? "" : ` with ${counted(event_count, "event")}`) +
    (title === undefined ? "" : `, ${alerts > 1 ? "the first " : ""}titled "${title}"`)
  );
}

function wordsOfActual({ event_count }: RuleTest, alerts: readonly TestAlert[]): string {
  const events = event_count === undefined || alerts.length === 0 ? "" : ` with ${counted(eventsIn(alerts), "event")}`;
  return `${counted(alerts.length, "alert")}${events}${alerts.length === 0 ? "" : `, titled ${titlesOf(alerts)}`}`;
}

function compare(test: RuleTest, alerts: readonly TestAlert[]): string[] {
  const faults: string[] = [];
  if (alerts.length !== test.alerts) {
    const titles = titlesOf(alerts);
    faults.push(
      `raises ${alerts.length} ${alerts.length === 1 ? "alert" : "alerts"}, not ${test.alerts}${titles === "" ? "" : `: ${titles}`}`,
    );
  }
  const eventCount = eventsIn(alerts);
  if (test.event_count !== undefined && eventCount !== test.event_count) {
    faults.push(`has ${eventCount} ${eventCount === 1 ? "event" : "events"} in its alerts, not ${test.event_count}`);
  }
  const title = alerts[0]?.title;
  if (test.title !== undefined && title !== test.title) faults.push(`is titled "${title ?? ""}", not "${test.title}"`);
  return faults;
}
