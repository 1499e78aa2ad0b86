import { parseExact } from "../lib/exact-json.ts";
import { serveThread } from "../lib/thread.ts";
import { entitiesOf, type Entity } from "../model/entity.ts";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { Rule } from "../model/rule.ts";
import type { ArrivalColumns } from "./arrival-columns.ts";
import { DetectionEngine, type DetectionResult } from "./detection-engine.ts";

// The worker thread that runs the rules, so that their cost does not delay requests.

/** The clock, set by each call. */
let now = 0;
const engine = new DetectionEngine({ now: () => now });

function parse(texts: readonly string[]): Event[] {
  return texts.map((text) => parseExact(text) as Event);
}

/** Adds the entities of the events of this chunk, so that alerts need not read them from the store. */
function withEntities(findings: readonly Finding[], events: readonly Event[]): Finding[] {
  if (findings.length === 0) return [];
  const byId = new Map(events.map((event) => [event.id, event]));
  return findings.map((finding) => {
    const entities: Record<string, readonly Entity[]> = {};
    for (const { id } of finding.events) {
      const event = byId.get(id);
      if (event) entities[id] = entitiesOf(event.raw);
    }
    return { ...finding, entities };
  });
}

const api = {
  setRules(rules: readonly Rule[]): void {
    for (const rule of rules) engine.setRule(rule);
  },
  removeRules(ids: readonly string[]): void {
    for (const id of ids) engine.removeRule(id);
  },
  process({ texts, places }: ArrivalColumns, nowMs: number): DetectionResult {
    now = nowMs;
    const events = parse(texts);
    const result = engine.process(events, places);
    return { ...result, findings: withEntities(result.findings, events) };
  },
  warm(ruleId: string, { texts, places }: ArrivalColumns, nowMs: number): void {
    now = nowMs;
    engine.warm(ruleId, parse(texts), places);
  },
  forget(ruleId: string): void {
    engine.forget(ruleId);
  },
  warmAbsence(...args: Parameters<DetectionEngine["warmAbsence"]>): void {
    engine.warmAbsence(...args);
  },
  tick(nowMs: number, seenMs: number): DetectionResult {
    return engine.tick(nowMs, seenMs);
  },
  metrics(): ReturnType<DetectionEngine["metrics"]> {
    return engine.metrics();
  },
};
export type DetectionApi = typeof api;

serveThread(api);
