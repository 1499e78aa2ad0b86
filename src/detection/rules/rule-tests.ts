import { parseTime } from "../../lib/time.ts";
import { isSameIncident, type Finding } from "../../model/finding.ts";
import { DetectionEngine } from "../detection-engine.ts";
import { toRule, type RuleDocument, type RuleTest } from "./rule-file.ts";

// Runs the tests of rule files through the detection engine.

export interface TestOutcome {
  readonly document: RuleDocument;
  readonly test: RuleTest;
  /** Index among the tests of the document. */
  readonly index: number;
  /** Deviations from the expected result; empty if the test passes. */
  readonly faults: readonly string[];
}

export function runRuleTests(documents: readonly RuleDocument[]): TestOutcome[] {
  return documents.flatMap((document) =>
    document.tests.map((test, index) => ({ document, test, index, faults: compare(test, alertsOf(document, test)) })),
  );
}

interface TestAlert {
  readonly title: string;
  readonly dedupKey: string;
  eventCount: number;
  firstEventMs: number;
  lastEventMs: number;
}

/** The alerts of a test. Each event arrives when it happens. */
function alertsOf(document: RuleDocument, test: RuleTest): TestAlert[] {
  let now = 0;
  const engine = new DetectionEngine({ now: () => now });
  // Rules that are disabled by default are tested too.
  engine.setRule({ ...toRule(document, { builtin: false }), enabled: true });
  const alerts: TestAlert[] = [];
  for (const event of test.events) {
    now = Math.max(now, parseTime(event.timestamp)!);
    addFindings(alerts, engine.tick(now).findings);
    addFindings(alerts, engine.process([event]).findings);
  }
  now += test.waitMs;
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

function compare(test: RuleTest, alerts: readonly TestAlert[]): string[] {
  const faults: string[] = [];
  if (alerts.length !== test.alerts) {
    const titles = titlesOf(alerts);
    faults.push(
      `raises ${alerts.length} ${alerts.length === 1 ? "alert" : "alerts"}, not ${test.alerts}${titles === "" ? "" : `: ${titles}`}`,
    );
  }
  const eventCount = alerts.reduce((sum, alert) => sum + alert.eventCount, 0);
  if (test.eventCount !== null && eventCount !== test.eventCount) {
    faults.push(`has ${eventCount} ${eventCount === 1 ? "event" : "events"} in its alerts, not ${test.eventCount}`);
  }
  const title = alerts[0]?.title;
  if (test.title !== null && title !== test.title) faults.push(`is titled "${title ?? ""}", not "${test.title}"`);
  return faults;
}
