import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { DAY_MS, formatTime, startOfDay } from "../../lib/time.ts";
import type { Resolution } from "../../model/alert-state.ts";
import type { Condition } from "../../model/condition.ts";
import { inputConditions, ruleCondition, type Rule } from "../../model/rule.ts";
import { toRuleBody } from "../../model/rule-body.ts";
import type { RuleInput } from "../../model/rule-schema.ts";
import { projectedValues } from "../../store/ports/projection.ts";
import { QueryRefused } from "../../store/ports/store-errors.ts";
import type { Store } from "../../store/ports/store.ts";
import { ThresholdPrefilter } from "../windows/threshold-prefilter.ts";
import { ADDRESS_FIELD, knownGoodCounter, SCORE_FIELD } from "./known-good.ts";
import { isMeasured, upperBound } from "../windows/threshold-measure.ts";
import { Playback, SAMPLE_EVENTS_MAX, TooManyIncidents, type PlayedEvent } from "./playback.ts";
import { projectEvents } from "./project-events.ts";

// Simulates a rule over stored events. The store's columns do the matching, with the same semantics; windows and
// deduplication are those of live detection.

export const SIMULATED_MS_MAX = 7 * DAY_MS;
/** Time limit of a simulation. */
const SIMULATION_MS_MAX = 25_000;
/** Matches between two yields to the event loop. */
const SLICE_EVENTS = 2000;

export type Estimate = "low" | "medium" | "high";

export interface Simulation {
  readonly matches: number;
  /** JSON texts, newest first. */
  readonly sampleEvents: readonly string[];
  readonly alerts: number;
  readonly alertsPerDay: number;
  readonly falsePositives: Estimate;
  /** Every UTC day of the range. */
  readonly byDay: readonly { readonly day: string; readonly matches: number; readonly alerts: number }[];
}

export interface SimulationRange {
  readonly fromMs: number;
  readonly toMs: number;
}

interface SimulationOptions {
  readonly store: Pick<Store, "events" | "alerts">;
  readonly now: () => number;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** A rule for simulation only; it is not in the rulebook. */
export function toSimulatedRule(input: RuleInput, nowMs: number): Rule {
  return {
    ...toRuleBody(input),
    id: "rule_simulated",
    enabled: true,
    builtin: false,
    createdAt: nowMs,
    updatedAt: nowMs,
    revision: 1,
    activeAfter: null,
    exceptions: input.exceptions.map(({ conditions, reason, expires_at }, i) => ({
      id: `exc_${i}`,
      conditions,
      reason,
      author: "",
      createdAt: nowMs,
      expiresAt: expires_at ?? null,
    })),
  };
}

export async function simulate(
  rule: Rule,
  { fromMs, toMs }: SimulationRange,
  { store, now, signal }: SimulationOptions,
): Promise<Simulation> {
  const timeout = AbortSignal.timeout(SIMULATION_MS_MAX);
  const stop = AbortSignal.any([signal, timeout]);
  const refuse = (error: unknown): never => {
    if (timeout.aborted)
      throw new QueryRefused(
        "time_range",
        `took longer than ${SIMULATION_MS_MAX / 1000} s: shorten the range or narrow the conditions`,
      );
    if (error instanceof TooManyIncidents) throw new QueryRefused("rule.dedup", error.message);
    // A condition that the columns do not support is part of the rule.
    if (error instanceof QueryRefused && error.field === "query") throw new QueryRefused("rule", error.message);
    throw error;
  };
  const condition = ruleCondition(rule, now());
  const tests = inputConditions(rule);
  const playback = new Playback(rule, fromMs);
  const fields = [...new Set([...playback.fields, ADDRESS_FIELD, SCORE_FIELD])];
  const prefilter = canPrefilter(rule) ? new ThresholdPrefilter(rule, fields) : undefined;
  const countKnownGood = knownGoodCounter(fields);
  let knownGood = 0;
  try {
    const query = { condition, fields, tests, fromMs, toMs };
    for await (const part of projectEvents(store.events, query, stop)) {
      playback.count(part.timesMs);
      knownGood += countKnownGood(part);
      await yieldToEventLoop();
      const picked = prefilter?.pick(part);
      const length = picked?.length ?? part.length;
      for (let from = 0; from < length; from += SLICE_EVENTS) {
        const events: PlayedEvent[] = [];
        for (let i = from; i < Math.min(from + SLICE_EVENTS, length); i++) {
          const at = picked?.[i] ?? i;
          const values = projectedValues(part, at);
          events.push({ key: part.seqs[at]!, timestampMs: part.timesMs[at]!, values, steps: part.passed[at]! });
        }
        playback.take(events);
        await yieldToEventLoop();
      }
    }
    stop.throwIfAborted();
    playback.end(Math.min(toMs, now()));
    const { matches, alerts } = playback;
    const days = (toMs - fromMs) / DAY_MS;
    const alertsPerDay = days === 0 ? 0 : alerts / days;
    const [sampleEvents, resolutions] = await Promise.all([
      matches === 0 ? [] : sample(store, condition, { fromMs: playback.sampleFromMs, toMs }, stop),
      store.alerts.resolutions(rule.name),
    ]);
    return {
      matches,
      sampleEvents,
      alerts,
      alertsPerDay,
      falsePositives: estimateFalsePositives({
        alertsPerDay,
        knownGood: matches === 0 ? 0 : knownGood / matches,
        resolutions,
      }),
      byDay: daysOf(fromMs, toMs).map((day) => ({
        day: formatTime(day).slice(0, 10),
        matches: playback.days.get(day)?.matches ?? 0,
        alerts: playback.days.get(day)?.alerts ?? 0,
      })),
    };
  } catch (error) {
    return refuse(error);
  }
}

/** True if counting alone can rule out events below the threshold. */
function canPrefilter({ threshold }: Rule): boolean {
  return threshold !== null && !isMeasured(threshold) && !upperBound(threshold) && threshold.inputs === undefined;
}

async function sample(
  store: Pick<Store, "events">,
  condition: Condition,
  range: SimulationRange,
  signal: AbortSignal,
): Promise<string[]> {
  const query = { condition, ...range, sort: [], limit: SAMPLE_EVENTS_MAX, aggs: [] };
  const { items } = await store.events.search(query, { signal });
  return items;
}

function daysOf(fromMs: number, toMs: number): number[] {
  const first = startOfDay(fromMs);
  const count = fromMs < toMs ? Math.ceil((toMs - first) / DAY_MS) : 0;
  return Array.from({ length: count }, (_, i) => first + i * DAY_MS);
}

/** Minimum number of resolved alerts for the estimate to use them. */
const RESOLVED_MIN = 3;

interface EstimateInputs {
  readonly alertsPerDay: number;
  /** The share of matches from a known-good source. */
  readonly knownGood: number;
  /** Resolutions of past alerts of the rule. */
  readonly resolutions: Readonly<Record<Resolution, number>>;
}

/**
 * Scores signs of false positives: many alerts a day (above 1: one point; above 10: two), matches mostly from known-good
 * sources (above 20 %: one; above 60 %: two), and past alerts of the rule resolved as false positive or benign (three or
 * more resolved, of them above 20 %: one; above 50 %: two; under 20 %: one less). Up to one point is low, up to three
 * medium, more is high.
 */
export function estimateFalsePositives({ alertsPerDay, knownGood, resolutions }: EstimateInputs): Estimate {
  const harmless = resolutions.false_positive + resolutions.benign;
  const resolved = harmless + resolutions.true_positive;
  const share = resolved < RESOLVED_MIN ? undefined : harmless / resolved;
  const points =
    pointsFor(alertsPerDay, 1, 10) +
    pointsFor(knownGood, 0.2, 0.6) +
    (share === undefined ? 0 : share < 0.2 ? -1 : pointsFor(share, 0.2, 0.5));
  return points <= 1 ? "low" : points <= 3 ? "medium" : "high";
}

function pointsFor(value: number, one: number, two: number): number {
  return value > two ? 2 : value > one ? 1 : 0;
}
