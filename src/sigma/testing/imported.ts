import { compileCondition } from "../../model/condition.ts";
import { sourceNames, type Event, type JsonObject } from "../../model/event.ts";
import { toConditions } from "../../model/rule.ts";
import { importSigma, type SigmaOutcome } from "../import.ts";
import { parseMapping, type Mapping } from "../mapping.ts";

// Imports Sigma text in tests and evaluates the resulting rule on events.

const sources = sourceNames("platform");

export function importText(content: string, mapping?: string): SigmaOutcome[] {
  return importSigma([{ name: "rules.yml", content }], { sources, mapping: mapping ? mappingOf(mapping) : undefined });
}

function mappingOf(text: string): Mapping {
  const outcome = parseMapping(text);
  if ("faults" in outcome) throw new Error(JSON.stringify(outcome.faults));
  return outcome.mapping;
}

export function importOne(content: string, mapping?: string): SigmaOutcome {
  const outcomes = importText(content, mapping);
  if (outcomes.length !== 1) throw new Error(`${outcomes.length} documents`);
  return outcomes[0]!;
}

const HEAD = "title: A rule\nlevel: high\nlogsource: { category: process_creation, product: windows }\n";

/** A complete rule with these lines as its `detection`. */
export function withDetection(detection: string): string {
  return `${HEAD}detection:\n${detection
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}`;
}

function event(raw: JsonObject): Event {
  return {
    id: "evt_1",
    type: "process_creation",
    source: "custom",
    class: "security",
    severity: "info",
    timestamp: "2026-11-15T10:00:00.000Z",
    raw,
    enrichment: {},
  };
}

export function matches(outcome: SigmaOutcome, raw: JsonObject): boolean {
  if (!outcome.rule) throw new Error(JSON.stringify(outcome.reasons));
  return compileCondition(toConditions(outcome.rule.conditions))(event(raw));
}
