import type { Logger } from "pino";
import type { Counter } from "prom-client";
import { timeOfId } from "../lib/id.ts";
import type { Thread } from "../lib/thread.ts";
import { ruleCondition, type Rule } from "../model/rule.ts";
import { QuestionRefused, StoreUnavailable, type EventStore } from "../store/store.ts";
import { memoryMsOf } from "./tracker.ts";
import type { DetectionApi } from "./worker.ts";

// After a start, rules that count over time get the matches that they had seen before it: those that arrived as long ago
// as a rule may remember, whatever their times.

/** Events that fill one rule's memory, the last to arrive: each is read from its file. */
const EVENTS_MAX = 50_000;
/** Attempts at a rule whose matches cannot be read: a page that is damaged stays so, and the other rules wait. */
const ATTEMPTS_MAX = 4;

export interface FillingOptions {
  readonly events: Pick<EventStore, "lastArrival" | "lastArrivalBefore" | "scanLast">;
  readonly thread: Thread<DetectionApi>;
  /** What the store refused is asked for again when this resolves. */
  readonly rest: (attempt: number, refusal: Refusal) => Promise<void>;
  /** Counts rules that do not remember all they should. */
  readonly cut: Counter;
  readonly log: Logger;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export type Refusal = StoreUnavailable | QuestionRefused;

/** `position` is the last event that rules have looked at. */
export async function fillRules(rules: readonly Rule[], position: string, options: FillingOptions): Promise<void> {
  const { events, now, signal } = options;
  // Where everything has been looked at, what was remembered would have been forgotten by now had nobody stopped.
  const isAllSeen = later(position, events.lastArrival()) === position;
  const untilMs = isAllSeen ? now() : timeOfId(position);
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
    await tryUntilFilled(rule, options, async () => {
      const after = later(await startOf(memoryMs), rule.activeAfter);
      if (after === null || after < position) await fillRule(rule, after, position, options);
    });
  }
}

/** Load passes, and is waited for; whatever else keeps the store from an answer must not keep every rule from its work. */
async function tryUntilFilled(
  rule: Rule,
  { thread, rest, cut, log, signal }: FillingOptions,
  fill: () => Promise<void>,
): Promise<void> {
  let failures = 0;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      return await fill();
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof QuestionRefused)) throw error;
      // What came before the refusal would count twice.
      await thread.call("forget", rule.id);
      if (!(error instanceof StoreUnavailable && error.reason === "queue_full")) failures++;
      if (failures >= ATTEMPTS_MAX) {
        cut.inc();
        log.error(
          { rule: rule.name, err: error },
          "what the rule had seen before the start cannot be read: it begins anew",
        );
        return;
      }
      await rest(attempt, error);
    }
  }
}

async function fillRule(
  rule: Rule,
  after: string | null,
  upTo: string,
  { events, thread, cut, log, now, signal }: FillingOptions,
): Promise<void> {
  // What an exception stopped only for a part of this time is known by the engine.
  const exceptions = rule.exceptions.filter(
    ({ activeAfter = null, expiresAt }) => expiresAt === null && later(after, activeAfter) === after,
  );
  const condition = ruleCondition({ ...rule, exceptions }, now());
  const question = { condition, after, upTo, eventsMax: EVENTS_MAX };
  let wasCut = false;
  let warming: Promise<void> = Promise.resolve();
  for await (const { texts, isCut } of events.scanLast(question, signal)) {
    wasCut = isCut;
    await warming;
    // The next ones are read meanwhile.
    warming = thread.call("warm", rule.id, texts, now());
    warming.catch(() => undefined);
  }
  await warming;
  if (!wasCut) return;
  cut.inc();
  log.warn({ rule: rule.name }, "too many matches before the start: the oldest are forgotten");
}

/** Of two ids the one that came later; null is before all of them. */
export function later(one: string | null, other: string | null): string | null {
  return one === null || (other !== null && other > one) ? other : one;
}
