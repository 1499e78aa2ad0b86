import type { NewEvent } from "../store/ports/event-engine.ts";

// Reports rules that could not be decided on an event: a pattern was aborted or saw only a part of a very long value, or two
// fields had too many values to compare, and all other conditions held; or the event had more values than a rule counts.
// Padding an event to evade a rule is thus reported. A report is an event, which the built-in rule detection.rule_undecided
// turns into an alert.

export const UNDECIDED_TYPE = "detection_rule_undecided";
/** A rule is reported once per period, counted from the epoch, and reason. */
const PERIOD_MS = 3_600_000;
/** Reports of all rules in a period. A metric counts every undecided event. */
const REPORTS_PER_PERIOD_MAX = 100;

/** The reasons and their text in reports. */
const REASONS = {
  patterns: "a value is too long for its patterns, or its fields have too many values to compare",
  values: "it has more values than a rule groups or counts by",
} as const;

export interface Undecided {
  readonly ruleId: string;
  readonly ruleName: string;
  readonly reason: keyof typeof REASONS;
  /** The first undecided event. */
  readonly eventId: string;
  events: number;
}

export class UndecidedReports {
  #period = -1;
  readonly #reported = new Set<string>();

  /** The reports that are due. A rule and period always have the same idempotency token, also after a restart. */
  reportsOf(undecided: readonly Undecided[], nowMs: number): NewEvent[] {
    const period = Math.floor(nowMs / PERIOD_MS);
    if (period !== this.#period) {
      this.#period = period;
      this.#reported.clear();
    }
    const reports: NewEvent[] = [];
    for (const each of undecided) {
      const key = `${each.ruleId} ${each.reason}`;
      if (this.#reported.has(key) || this.#reported.size >= REPORTS_PER_PERIOD_MAX) continue;
      this.#reported.add(key);
      reports.push(reportOf(each, period, nowMs));
    }
    return reports;
  }
}

function reportOf({ ruleId, ruleName, reason, eventId, events }: Undecided, period: number, nowMs: number): NewEvent {
  return {
    idempotencyToken: `${UNDECIDED_TYPE} ${ruleId} ${reason} ${period}`,
    draft: {
      type: UNDECIDED_TYPE,
      source: "custom",
      severity: "high",
      class: "security",
      timestampMs: nowMs,
      raw: {
        detection_rule: ruleName,
        detection_rule_id: ruleId,
        undecided_event_id: eventId,
        undecided_events: events,
        reason,
        message: `Rule ${ruleName} could not be decided on event ${eventId}: ${REASONS[reason]}`,
      },
      enrichment: {},
    },
  };
}
