import { hash } from "node:crypto";
import type { Rule } from "./rule.ts";

// The part of a rule that decides what matches. Alerts keep a reference to it, because they outlive edits and deletion of
// their rule.

export type RuleDefinition = Pick<
  Rule,
  | "source"
  | "conditions"
  | "window"
  | "threshold"
  | "sequence"
  | "sequenceOrder"
  | "sequenceMin"
  | "groupBy"
  | "parts"
  | "absence"
>;

/** A definition under an id that is derived from its content, so that all alerts of one version of a rule share it. */
export interface IdentifiedDefinition {
  readonly id: string;
  readonly definition: RuleDefinition;
}

const ID_CHARACTERS = 22;

function definitionOf(rule: RuleDefinition): RuleDefinition {
  const { source, conditions, window, threshold, sequence, sequenceOrder, sequenceMin, groupBy, parts, absence } = rule;
  return { source, conditions, window, threshold, sequence, sequenceOrder, sequenceMin, groupBy, parts, absence };
}

/** Rules never change in place, so that each is hashed once. */
const identified = new WeakMap<RuleDefinition, IdentifiedDefinition>();

export function identifyDefinition(rule: RuleDefinition): IdentifiedDefinition {
  const known = identified.get(rule);
  if (known) return known;
  const definition = definitionOf(rule);
  const id = `def_${hash("sha256", JSON.stringify(definition), "base64url").slice(0, ID_CHARACTERS)}`;
  const made = { id, definition };
  identified.set(rule, made);
  return made;
}
