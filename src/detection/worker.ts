import { serveThread } from "../lib/thread.ts";
import type { Event } from "../model/event.ts";
import type { Rule } from "../model/rule.ts";
import { Engine, type Outcome } from "./engine.ts";

// The thread in which rules are run over events: off the path of requests, whatever the rules cost.

const engine = new Engine({ now: Date.now });

function parse(texts: readonly string[]): Event[] {
  return texts.map((text) => JSON.parse(text) as Event);
}

const api = {
  setRules(rules: readonly Rule[]): void {
    for (const rule of rules) engine.setRule(rule);
  },
  removeRules(ids: readonly string[]): void {
    for (const id of ids) engine.removeRule(id);
  },
  /** How far back each rule's memory reaches, in milliseconds; 0 for one without. */
  memories(ids: readonly string[]): number[] {
    return ids.map((id) => engine.windowOf(id));
  },
  process(texts: readonly string[]): Outcome {
    return engine.process(parse(texts));
  },
  /** Those of these events that came no later than the named one, in the order in which they came. */
  warm(ruleId: string, texts: readonly string[], upTo: string): void {
    const known = parse(texts).filter(({ id }) => id <= upTo);
    engine.warm(
      ruleId,
      known.sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  },
  warmAbsence(seen: readonly { ruleId: string; group: string; atMs: number }[], nowMs: number): void {
    engine.warmAbsence(seen, nowMs);
  },
  tick(nowMs: number): Outcome {
    return engine.tick(nowMs);
  },
  metrics(): ReturnType<Engine["metrics"]> {
    return engine.metrics();
  },
};
export type DetectionApi = typeof api;

serveThread(api);
