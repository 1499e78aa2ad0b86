import { setImmediate as breathe } from "node:timers/promises";
import { DAY_MS, formatTime, startOfDay } from "../lib/time.ts";
import type { Resolution } from "../model/alert-state.ts";
import type { Condition } from "../model/condition.ts";
import { ruleCondition, toConditions, toRuleBody, type Rule, type RuleInput } from "../model/rule.ts";
import { projectedValues, QuestionRefused, type Store } from "../store/store.ts";
import { Crowds } from "./crowds.ts";
import { ADDRESS_FIELD, knownGoodCounter, SCORE_FIELD } from "./known-good.ts";
import { isMeasured, upperBound } from "./measure.ts";
import { Playback, SAMPLE_EVENTS_MAX, TooManyAttacks, type PlayedEvent } from "./playback.ts";

// What a rule would have done over stored events. Matching is left to the store's columns, which mean the same; counting
// over time and folding are those of live detection.

export const SIMULATED_MS_MAX = 7 * DAY_MS;
/** Longer than this nobody waits, and the machine has other things to do. */
const SIMULATION_MS_MAX = 25_000;
/** Matches after which others get their turn. */
const SLICE_EVENTS = 2000;

export type Estimate = "low" | "medium" | "high";

export interface Simulation {
  readonly matches: number;
  /** As JSON texts, newest first. */
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
  /** The caller no longer wants the answer. */
  readonly signal: AbortSignal;
}

/** A rule that is only tried: it has no place among the others. */
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
  const late = AbortSignal.timeout(SIMULATION_MS_MAX);
  const stop = AbortSignal.any([signal, late]);
  const refuse = (error: unknown): never => {
    if (late.aborted)
      throw new QuestionRefused(
        "time_range",
        `took longer than ${SIMULATION_MS_MAX / 1000} s: make it shorter, or the conditions narrower`,
      );
    if (error instanceof TooManyAttacks) throw new QuestionRefused("rule.dedup", error.message);
    // What the columns cannot be asked stands somewhere in the rule.
    if (error instanceof QuestionRefused && error.field === "query") throw new QuestionRefused("rule", error.message);
    throw error;
  };
  const condition = ruleCondition(rule, now());
  const steps = rule.sequence?.map((step) => toConditions(step.conditions)) ?? [];
  const playback = new Playback(rule, fromMs);
  const fields = [...new Set([...playback.fields, ADDRESS_FIELD, SCORE_FIELD])];
  const crowds = canLeaveOut(rule) ? new Crowds(rule, fields) : undefined;
  const countKnownGood = knownGoodCounter(fields);
  let knownGood = 0;
  try {
    const question = { condition, fields, tests: steps, fromMs, toMs };
    for await (const part of store.events.project(question, stop)) {
      playback.count(part.timesMs);
      knownGood += countKnownGood(part);
      await breathe();
      const picked = crowds?.pick(part);
      const length = picked?.length ?? part.length;
      for (let from = 0; from < length; from += SLICE_EVENTS) {
        const events: PlayedEvent[] = [];
        for (let i = from; i < Math.min(from + SLICE_EVENTS, length); i++) {
          const at = picked?.[i] ?? i;
          const values = projectedValues(part, at);
          events.push({ key: part.seqs[at]!, timestampMs: part.timesMs[at]!, values, steps: part.passed[at]! });
        }
        playback.take(events);
        await breathe();
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

/** Whether what is too little to reach the threshold can be told by counting alone. */
function canLeaveOut({ threshold }: Rule): boolean {
  return threshold !== null && !isMeasured(threshold) && !upperBound(threshold);
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

/** Alerts of the past say something once there are this many. */
const RESOLVED_MIN = 3;

interface Evidence {
  readonly alertsPerDay: number;
  /** Of the matches, the share whose source is known to be good. */
  readonly knownGood: number;
  /** How alerts of the same name were resolved. */
  readonly resolutions: Readonly<Record<Resolution, number>>;
}

/**
 * Points for each sign that people would be called for nothing: a rule that raises many alerts a day (above 1: one point;
 * above 10: two), matches mostly from known-good sources (above 20 %: one; above 60 %: two), and past alerts of its name
 * that turned out to be nothing (three or more resolved, of them above 20 %: one; above 50 %: two; under 20 %: one less).
 * Up to one point is low, up to three medium, more is high.
 */
export function estimateFalsePositives({ alertsPerDay, knownGood, resolutions }: Evidence): Estimate {
  const nothing = resolutions.false_positive + resolutions.benign;
  const resolved = nothing + resolutions.true_positive;
  const share = resolved < RESOLVED_MIN ? undefined : nothing / resolved;
  const points =
    pointsFor(alertsPerDay, 1, 10) +
    pointsFor(knownGood, 0.2, 0.6) +
    (share === undefined ? 0 : share < 0.2 ? -1 : pointsFor(share, 0.2, 0.5));
  return points <= 1 ? "low" : points <= 3 ? "medium" : "high";
}

function pointsFor(value: number, one: number, two: number): number {
  return value > two ? 2 : value > one ? 1 : 0;
}
