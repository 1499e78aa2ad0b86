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
  process(texts: readonly string[]): Outcome {
    return engine.process(parse(texts));
  },
  warm(ruleId: string, texts: readonly string[]): void {
    engine.warm(ruleId, parse(texts));
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
