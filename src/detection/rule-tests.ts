import { parseTime } from "../lib/time.ts";
import { isSameAttack, type Finding } from "../model/finding.ts";
import { Engine } from "./engine.ts";
import { toRule, type RuleDocument, type RuleTest } from "./rule-file.ts";

// The tests that stand in a rule's file, run through the same engine as everything else.

export interface TestOutcome {
  readonly document: RuleDocument;
  readonly test: RuleTest;
  /** Its place among the tests of the document. */
  readonly index: number;
  /** What is not as the test says, in words; empty when it passes. */
  readonly faults: readonly string[];
}

export function runRuleTests(documents: readonly RuleDocument[]): TestOutcome[] {
  return documents.flatMap((document) =>
    document.tests.map((test, index) => ({ document, test, index, faults: compare(test, alertsOf(document, test)) })),
  );
}

interface Alert {
  readonly title: string;
  readonly foldKey: string;
  eventCount: number;
  firstEventMs: number;
  lastEventMs: number;
}

/** The alerts that the events of a test raise, each event arriving when it happens. */
function alertsOf(document: RuleDocument, test: RuleTest): Alert[] {
  let now = 0;
  const engine = new Engine({ now: () => now });
  // A rule that is off by default is tested all the same.
  engine.setRule({ ...toRule(document, { builtin: false }), enabled: true });
  const alerts: Alert[] = [];
  for (const event of test.events) {
    now = Math.max(now, parseTime(event.timestamp)!);
    fold(alerts, engine.tick(now).findings);
    fold(alerts, engine.process([event]).findings);
  }
  now += test.waitMs;
  fold(alerts, engine.tick(now).findings);
  return alerts;
}

function fold(alerts: Alert[], findings: readonly Finding[]): void {
  for (const finding of findings) {
    const { title, foldKey, eventCount, firstEventMs, lastEventMs } = finding;
    const known = alerts.findLast((alert) => alert.foldKey === foldKey && isSameAttack(alert, finding, finding.foldMs));
    if (!known) {
      alerts.push({ title, foldKey, eventCount, firstEventMs, lastEventMs });
      continue;
    }
    known.eventCount += eventCount;
    known.firstEventMs = Math.min(known.firstEventMs, firstEventMs);
    known.lastEventMs = Math.max(known.lastEventMs, lastEventMs);
  }
}

/** Alerts that a test which fails shows by their titles: a rule that matches too much has thousands. */
const TITLES_SHOWN_MAX = 20;

function titlesOf(alerts: readonly Alert[]): string {
  const titles = alerts.slice(0, TITLES_SHOWN_MAX).map(({ title }) => `"${title}"`);
  const more = alerts.length - titles.length;
  return [...titles, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}

function compare(test: RuleTest, alerts: readonly Alert[]): string[] {
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
