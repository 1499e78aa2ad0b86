import { parseExact } from "../lib/exact-json.ts";
import { serveThread } from "../lib/thread.ts";
import type { Event } from "../model/event.ts";
import type { Rule } from "../model/rule.ts";
import { Engine, type Outcome } from "./engine.ts";

// The thread in which rules are run over events: off the path of requests, whatever the rules cost.

/** As whoever calls says it is. */
let now = 0;
const engine = new Engine({ now: () => now });

function parse(texts: readonly string[]): Event[] {
  return texts.map((text) => parseExact(text) as Event);
}

const api = {
  setRules(rules: readonly Rule[]): void {
    for (const rule of rules) engine.setRule(rule);
  },
  removeRules(ids: readonly string[]): void {
    for (const id of ids) engine.removeRule(id);
  },
  process(texts: readonly string[], nowMs: number): Outcome {
    now = nowMs;
    return engine.process(parse(texts));
  },
  warm(ruleId: string, texts: readonly string[], nowMs: number): void {
    now = nowMs;
    engine.warm(ruleId, parse(texts));
  },
  forget(ruleId: string): void {
    engine.forget(ruleId);
  },
  warmAbsence(...args: Parameters<Engine["warmAbsence"]>): void {
    engine.warmAbsence(...args);
  },
  tick(nowMs: number, seenMs: number): Outcome {
    return engine.tick(nowMs, seenMs);
  },
  metrics(): ReturnType<Engine["metrics"]> {
    return engine.metrics();
  },
};
export type DetectionApi = typeof api;

serveThread(api);
