import { DetectionEngine } from "../src/detection/detection-engine.ts";
import { idMaker } from "../src/lib/id.ts";
import { formatTime } from "../src/lib/time.ts";
import { compileCondition } from "../src/model/condition.ts";
import type { Event } from "../src/model/event.ts";
import { ruleCondition, type Rule } from "../src/model/rule.ts";
import { toRuleBody } from "../src/model/rule-body.ts";
import { cpuMs, median, perSecond, type Measurement } from "./figures.ts";
import { processEvents, sigmaRules } from "./sigma-rules.ts";

// Thousands of rules on process events, on one core: the engine, compared with testing every rule on every event.

const RULES = 3000;
const FEW_RULES = 100;
const EVENTS = 20_000;
const BATCH = 500;
const ROUNDS = 5;
const PLAIN_EVENTS = 200;
const EVENTS_PER_SECOND_MIN = 15_000;
const FASTER_MIN = 50;
const COST_RATIO_MAX = 10;
const LOAD_MS_MAX = 50;

export async function detectRules(): Promise<readonly Measurement[]> {
  const rules = sigmaRules(RULES).map((input, i): Rule => {
    const id = `rule_${i}`;
    const kept = { id, builtin: false, createdAt: 0, updatedAt: 0, revision: 1, activeAfter: null, exceptions: [] };
    return { ...toRuleBody(input), ...kept, name: `bench.rule_${i}` };
  });
  const events = processEventsOf(EVENTS);
  // Alternates within one run, so that other load on the machine affects all alike.
  const many = open(rules);
  const few = open(rules.slice(0, FEW_RULES));
  const manyRates: number[] = [];
  const fewRates: number[] = [];
  many.run(events);
  few.run(events);
  for (let round = 0; round < ROUNDS; round++) {
    manyRates.push(many.run(events));
    fewRates.push(few.run(events));
  }
  const plainRate = runPlainly(rules, events.slice(0, PLAIN_EVENTS));
  const [rate, fewRate] = [median(manyRates), median(fewRates)];
  const faster = rate / plainRate;
  const cost = fewRate / rate;
  return [
    {
      name: `${RULES.toLocaleString("en")} Sigma-shaped rules on process events, one core`,
      result: `${perSecond(rate)}; ${many.matches()} matches`,
      baseline: `${perSecond(plainRate)} by testing every rule`,
      ratio: faster,
      target: `at least ${perSecond(EVENTS_PER_SECOND_MIN)}, and ${FASTER_MIN} times as fast`,
      met: rate >= EVENTS_PER_SECOND_MIN && faster >= FASTER_MIN,
      values: { rate, plainRate, faster, matches: many.matches() },
    },
    {
      name: `cost of an event with ${RULES.toLocaleString("en")} rules, compared with ${FEW_RULES}`,
      result: `${(1e6 / rate).toFixed(1)} µs`,
      baseline: `${(1e6 / fewRate).toFixed(1)} µs`,
      ratio: cost,
      target: `at most ${COST_RATIO_MAX} times`,
      met: cost <= COST_RATIO_MAX,
      values: { manyMicroseconds: 1e6 / rate, fewMicroseconds: 1e6 / fewRate, cost },
    },
    {
      name: `slowest rule while loading ${RULES.toLocaleString("en")} rules`,
      result: `${many.longestLoadMs.toFixed(1)} ms of ${many.loadMs.toFixed(0)} ms`,
      target: `at most ${LOAD_MS_MAX} ms`,
      met: many.longestLoadMs <= LOAD_MS_MAX,
      values: { longestMs: many.longestLoadMs, totalMs: many.loadMs },
    },
  ];
}

function processEventsOf(count: number): Event[] {
  const fromMs = Date.now() - count;
  const nextId = idMaker("evt_", () => fromMs);
  return [...processEvents(count, fromMs)].map(
    ({ timestampMs, type, source, severity, class: kind, raw, enrichment }) =>
      // Parsed from text, as from the journal.
      JSON.parse(
        JSON.stringify({
          id: nextId(),
          type,
          source,
          class: kind,
          severity,
          timestamp: formatTime(timestampMs),
          raw,
          enrichment,
        }),
      ),
  );
}

function open(rules: readonly Rule[]) {
  const engine = new DetectionEngine({ now: Date.now });
  let longestLoadMs = 0;
  const loadedFrom = cpuMs();
  for (const rule of rules) {
    const startedAt = cpuMs();
    engine.setRule(rule);
    longestLoadMs = Math.max(longestLoadMs, cpuMs() - startedAt);
  }
  const loadMs = cpuMs() - loadedFrom;
  let matches = 0;
  const run = (events: readonly Event[]): number => {
    matches = 0;
    const startedAt = cpuMs();
    for (let at = 0; at < events.length; at += BATCH) {
      const outcome = engine.process(events.slice(at, at + BATCH));
      for (const { timesMs } of outcome.matches) matches += timesMs.length;
    }
    return (events.length / (cpuMs() - startedAt)) * 1000;
  };
  return { run, matches: () => matches, longestLoadMs, loadMs };
}

function runPlainly(rules: readonly Rule[], events: readonly Event[]): number {
  const conditions = rules.map((rule) => compileCondition(ruleCondition(rule, Date.now())));
  let matches = 0;
  const round = () => {
    for (const event of events) for (const holds of conditions) if (holds(event)) matches++;
  };
  round();
  const startedAt = cpuMs();
  round();
  if (matches < 0) throw new Error("never");
  return (events.length / (cpuMs() - startedAt)) * 1000;
}
