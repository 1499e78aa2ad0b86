import type { NewEvent } from "../store/store.ts";

// Reports rules that could not be decided on an event: a pattern was given up, or saw only a part of a very long value, and
// everything else the rule asks for held; or the event had more values to count than a rule counts of one event. Whoever pads
// an event to slip past a rule is reported instead. A report is an event of its own, which the built-in rule
// detection.rule_undecided turns into an alert.

export const UNDECIDED_TYPE = "detection_rule_undecided";
/** A rule is reported once in each such period, counted from the epoch, for each reason. */
const PERIOD_MS = 3_600_000;
/** Reports of all rules in a period; a metric counts what is beyond that. */
const REPORTS_PER_PERIOD_MAX = 100;

/** What there was too much of, and how the report puts it. */
const REASONS = {
  patterns: "a value is too long for its patterns",
  values: "it has more values than a rule groups or counts by",
} as const;

export interface Undecided {
  readonly ruleId: string;
  readonly ruleName: string;
  readonly reason: keyof typeof REASONS;
  /** The first of the events. */
  readonly eventId: string;
  events: number;
}

export class UndecidedReports {
  #period = -1;
  readonly #reported = new Set<string>();

  /** Events for those that are to be reported now. The same rule and period have the same token, also after a restart. */
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
