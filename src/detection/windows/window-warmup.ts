import type { Logger } from "pino";
import type { Counter } from "prom-client";
import { timeOfId } from "../../lib/id.ts";
import type { Thread } from "../../lib/thread.ts";
import { ruleCondition, type Rule } from "../../model/rule.ts";
import type { EventEngine } from "../../store/ports/event-engine.ts";
import { QueryRefused, StoreUnavailable } from "../../store/ports/store-errors.ts";
import { arrivalColumns } from "../arrival-columns.ts";
import { memoryMsOf } from "./rule-tracker.ts";
import type { DetectionApi } from "../detection-thread.ts";

// Warm-up after a start: rules that count over time get the matches from before it, as far back by arrival as the rule may
// remember, regardless of their timestamps.

/** Events that warm up one rule, the last to arrive. Each is read from its file. */
const EVENTS_MAX = 50_000;
/** Attempts for a rule whose matches cannot be read. Damage on disk is permanent, and the other rules wait. */
const ATTEMPTS_MAX = 4;

export interface WarmupOptions {
  readonly events: Pick<EventEngine, "lastArrival" | "lastArrivalBefore" | "scanLast">;
  readonly thread: Thread<DetectionApi>;
  /** Waits before a refused query is tried again. */
  readonly backOff: (attempt: number, refusal: WarmupRefusal) => Promise<void>;
  /** Counts rules with an incomplete memory. */
  readonly cut: Counter;
  readonly log: Logger;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export type WarmupRefusal = StoreUnavailable | QueryRefused;

/** Warms up the rules; `position` is the place of the last processed event. */
export async function warmUpRules(rules: readonly Rule[], position: string, options: WarmupOptions): Promise<void> {
  const { events, now, signal } = options;
  // If nothing is left to process, memory would have expired by the current time without the stop.
  const isCaughtUp = later(position, await events.lastArrival()) === position;
  const untilMs = isCaughtUp ? now() : timeOfId(position);
  const starts = new Map<number, string | null>();
  const startOf = async (memoryMs: number) => {
    let start = starts.get(memoryMs);
    if (start === undefined) {
      start = await events.lastArrivalBefore(untilMs - memoryMs);
      starts.set(memoryMs, start);
    }
    return start;
  };
  for (const rule of rules) {
    const memoryMs = memoryMsOf(rule);
    if (!rule.enabled || memoryMs === 0 || signal.aborted) continue;
    await retryUntilWarm(rule, options, async () => {
      const after = later(await startOf(memoryMs), rule.activeAfter);
      if (after === null || after < position) await warmUpRule(rule, after, position, options);
    });
  }
}

/** Retries without limit while the store is overloaded. Other failures must not block all rules. */
async function retryUntilWarm(
  rule: Rule,
  { thread, backOff, cut, log, signal }: WarmupOptions,
  warmUp: () => Promise<void>,
): Promise<void> {
  let failures = 0;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      return await warmUp();
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof QueryRefused)) throw error;
      // Matches read before the refusal would otherwise count twice.
      await thread.call("forget", rule.id);
      if (!(error instanceof StoreUnavailable && error.reason === "queue_full")) failures++;
      if (failures >= ATTEMPTS_MAX) {
        cut.inc();
        log.error({ rule: rule.name, err: error }, "warm-up failed: the rule starts without its earlier matches");
        return;
      }
      await backOff(attempt, error);
    }
  }
}

async function warmUpRule(
  rule: Rule,
  after: string | null,
  upTo: string,
  { events, thread, cut, log, now, signal }: WarmupOptions,
): Promise<void> {
  // The engine applies exceptions that were active for only a part of this time.
  const exceptions = rule.exceptions.filter(
    ({ activeAfter = null, expiresAt }) => expiresAt === null && later(after, activeAfter) === after,
  );
  const condition = ruleCondition({ ...rule, exceptions }, now());
  const question = { condition, after, upTo, eventsMax: EVENTS_MAX };
  let wasCut = false;
  let warming: Promise<void> = Promise.resolve();
  for await (const { arrivals, isCut } of events.scanLast(question, signal)) {
    wasCut = isCut;
    await warming;
    // The store reads the next page meanwhile.
    warming = thread.call("warm", rule.id, arrivalColumns(arrivals), now());
    warming.catch(() => undefined);
  }
  await warming;
  if (!wasCut) return;
  cut.inc();
  log.warn({ rule: rule.name }, "warm-up truncated: the rule has too many earlier matches, the oldest are ignored");
}

/** The later of two places; null precedes all. */
export function later(one: string | null, other: string | null): string | null {
  return one === null || (other !== null && other > one) ? other : one;
}
