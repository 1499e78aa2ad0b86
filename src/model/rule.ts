import { DAY_MS } from "../lib/time.ts";
import {
  ALWAYS,
  toFieldTest,
  toKeywordTest,
  type Condition,
  type FieldTestInput,
  type KeywordInput,
} from "./condition.ts";
import type { Severity } from "./event.ts";
import type { RuleTest } from "./rule-test.ts";

// Rules: conditions on one event and, over several events, a threshold, a sequence or an absence. The API, the store and
// rule files use this shape. The schemas are in rule-schema.ts, so that threads that never validate rules need not load zod.

export const ANY_SOURCE = "any";
export const CHANNELS = [
  "slack",
  "email",
  "webhook",
  "ntfy",
  "telegram",
  "discord",
  "teams",
  "pagerduty",
  "opsgenie",
  "matrix",
  "syslog",
  "http",
  "elasticsearch",
] as const;
export type Channel = (typeof CHANNELS)[number];
export const WINDOW_MS_MAX = 7 * DAY_MS;
export const EXCEPTIONS_MAX = 100;
export const ENDED_EXCEPTIONS_MAX = 100;

/** An item of `conditions`: a test, or tests combined with any, all or not. */
export type ConditionInput =
  | FieldTestInput
  | KeywordInput
  | { any: ConditionInput[] }
  | { all: ConditionInput[] }
  | { not: ConditionInput };

/** Converts a list of conditions, all of which must hold. */
export function toConditions(items: readonly ConditionInput[]): Condition {
  return items.length === 0 ? ALWAYS : { kind: "all", of: items.map(toItem) };
}

function toItem(item: ConditionInput): Condition {
  if ("any" in item) return { kind: "any", of: item.any.map(toItem) };
  if ("all" in item) return { kind: "all", of: item.all.map(toItem) };
  if ("not" in item) return { kind: "not", of: toItem(item.not) };
  return "keyword" in item ? toKeywordTest(item) : toFieldTest(item);
}

export function pathList(paths: string | readonly string[] | null | undefined): readonly string[] {
  return paths === null || paths === undefined ? [] : typeof paths === "string" ? [paths] : paths;
}

export interface RuleException {
  readonly id: string;
  readonly conditions: readonly ConditionInput[];
  readonly reason: string;
  readonly author: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  /** The exception applies to events after this place in the order of arrival. Null, or absent in older records: to all events. */
  readonly activeAfter?: string | null | undefined;
}

/** A deleted exception: events that it excluded while it existed stay uncounted. */
export interface EndedException extends Pick<RuleException, "conditions" | "expiresAt" | "activeAfter"> {
  /** The place of the last event that it applied to. */
  readonly upTo: string;
}

/** The origin of an imported rule, by which later filters refer to it. */
export interface RuleOrigin {
  readonly sigma: {
    readonly id: string | null;
    readonly name: string | null;
    readonly logsource: {
      readonly category?: string | undefined;
      readonly product?: string | undefined;
      readonly service?: string | undefined;
    };
  };
}

type Paths = string | readonly string[];

/** What a step or a threshold counts: events, or occurrences of a part. */
interface Input {
  readonly conditions?: readonly ConditionInput[] | undefined;
  /** The name of the part, instead of conditions. */
  readonly part?: string | undefined;
  /** Paths of the group values, where they differ from the rule's. */
  readonly group_by?: Paths | undefined;
}

export interface ThresholdInput extends Input {
  /** Paths of the counted or measured values, where they differ from the threshold's. */
  readonly value?: Paths | undefined;
}

export interface Threshold {
  readonly count?: number | undefined;
  readonly group_by?: Paths | undefined;
  readonly distinct?: Paths | undefined;
  readonly sum?: string | undefined;
  readonly avg?: string | undefined;
  readonly percentile?: { readonly of: string; readonly rank: number } | undefined;
  readonly gte?: number | undefined;
  readonly gt?: number | undefined;
  readonly lte?: number | undefined;
  readonly lt?: number | undefined;
  /** Events or parts that count; default: every event that meets the conditions. */
  readonly inputs?: readonly ThresholdInput[] | undefined;
}

export interface Step extends Input {
  readonly name: string;
  readonly count: number;
  /** The step must not happen. */
  readonly absent?: boolean | undefined;
}

/** A correlation within a rule. It raises no alerts: each time it fires is an occurrence that the rule counts. */
export interface Part {
  readonly name: string;
  readonly conditions: readonly ConditionInput[];
  readonly window: string;
  readonly threshold?: Threshold | null | undefined;
  readonly sequence?: readonly Step[] | null | undefined;
  readonly sequence_order: "in_order" | "any";
  readonly sequence_min?: number | null | undefined;
  readonly group_by?: Paths | null | undefined;
}

/** A stored rule. */
export interface Rule {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly severity: Severity;
  readonly enabled: boolean;
  readonly source: string;
  readonly tags: readonly string[];
  readonly title: string | null;
  readonly references: readonly string[];
  readonly conditions: readonly ConditionInput[];
  readonly window: string | null;
  readonly threshold: Threshold | null;
  readonly sequence: readonly Step[] | null;
  readonly sequenceOrder: "in_order" | "any";
  /** Minimum number of steps. Null, or absent in older records: all steps. */
  readonly sequenceMin?: number | null | undefined;
  readonly groupBy: Paths | null;
  /** Correlations that the threshold or the sequence counts. Absent in older records: none. */
  readonly parts?: readonly Part[] | undefined;
  readonly absence: string | null;
  readonly dedup: { readonly period: string; readonly by: Paths | null };
  readonly exceptions: readonly RuleException[];
  /** Deleted exceptions that applied to matches which the rule may still remember. */
  readonly endedExceptions?: readonly EndedException[] | undefined;
  readonly actions: readonly { readonly alert: { readonly channels: readonly Channel[] } }[];
  /** Absent: none, or a built-in rule, whose tests are read from its file when they are asked for. */
  readonly tests?: readonly RuleTest[] | undefined;
  /** Null, or absent in older records: created here. */
  readonly origin?: RuleOrigin | null | undefined;
  readonly builtin: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Increases with every change, to detect concurrent edits. */
  readonly revision: number;
  /** The rule evaluates events after this place in the order of arrival; null: all events. */
  readonly activeAfter: string | null;
}

export interface RuleStats {
  readonly matches24h: number;
  readonly matches7d: number;
  readonly lastMatchAt: number | null;
}

/** The user-defined fields of a rule in stored form. The rulebook adds exceptions, with their ids and authors. */
export type RuleBody = Omit<
  Rule,
  "id" | "builtin" | "createdAt" | "updatedAt" | "revision" | "activeAfter" | "exceptions" | "endedExceptions"
>;

/** The condition of an event that counts for the rule at this time: source, conditions, and no active exception. */
export function ruleCondition(rule: Pick<Rule, "source" | "exceptions"> & Correlated, nowMs: number): Condition {
  const parts: Condition[] = [];
  if (rule.source !== ANY_SOURCE) {
    parts.push({ kind: "test", field: "source", operator: "equals", value: rule.source, ignoreCase: false });
  }
  if ((rule.parts ?? []).length > 0) parts.push({ kind: "any", of: inputConditions(rule) });
  else {
    if (rule.conditions.length > 0) parts.push(toConditions(rule.conditions));
    if (inputsOf(rule)) parts.push({ kind: "any", of: inputConditions(rule) });
  }
  for (const { conditions, expiresAt } of rule.exceptions) {
    if (expiresAt === null || expiresAt > nowMs) parts.push({ kind: "not", of: toConditions(conditions) });
  }
  return { kind: "all", of: parts };
}

/** The correlation of a rule or of a part. */
export type Correlated = Pick<Rule, "conditions" | "threshold" | "sequence" | "parts">;

/** The inputs of the sequence or the threshold; undefined if every match counts. */
export function inputsOf({
  sequence,
  threshold,
}: Pick<Rule, "sequence" | "threshold">): readonly (ThresholdInput | Step)[] | undefined {
  return sequence ?? threshold?.inputs;
}

/**
 * The condition of each input that counts events, in the order of the parts and then of the rule itself. Without parts, the
 * rule's conditions hold for every match and are left out; with parts, they apply to the rule's own inputs alone.
 */
export function inputConditions(rule: Correlated): Condition[] {
  const parts = (rule.parts ?? []).map(toCorrelated);
  if (parts.length === 0) return (inputsOf(rule) ?? []).map(({ conditions = [] }) => toConditions(conditions));
  return [...parts, rule].flatMap((stage) => {
    const inputs = inputsOf(stage)?.filter(({ part }) => part === undefined) ?? [{ conditions: [] }];
    return inputs.map(({ conditions = [] }) => toConditions([...stage.conditions, ...conditions]));
  });
}

/** True if occurrences of the part are counted one by one: then no two of them may share an event. */
export function countsPart({ threshold }: Pick<Rule, "threshold">, name: string): boolean {
  return threshold?.distinct === undefined && (threshold?.inputs ?? []).some(({ part }) => part === name);
}

/** Converts a part to the form of a rule. */
export function toCorrelated(
  part: Part,
): Correlated & Pick<Rule, "window" | "sequenceOrder" | "sequenceMin" | "groupBy"> {
  return {
    conditions: part.conditions,
    window: part.window,
    threshold: part.threshold ?? null,
    sequence: part.sequence ?? null,
    sequenceOrder: part.sequence_order,
    sequenceMin: part.sequence_min ?? null,
    groupBy: part.group_by ?? null,
  };
}

/** True if the sequence ends with an absent step: only the clock can complete it. */
export function isOpenEnded({ sequence }: Pick<Rule, "sequence">): boolean {
  return sequence?.at(-1)?.absent === true;
}

/** True if the rule fires when a period ends rather than when an event arrives. */
export function isDecidedByClock({ sequence, threshold }: Pick<Rule, "sequence" | "threshold">): boolean {
  return isOpenEnded({ sequence }) || threshold?.lte !== undefined || threshold?.lt !== undefined;
}

/** The paths whose values separate the rule's alerts in deduplication. */
export function dedupPaths(rule: Pick<Rule, "dedup" | "threshold" | "groupBy">): readonly string[] {
  return rule.dedup.by === null ? groupPaths(rule) : pathList(rule.dedup.by);
}

export function groupPaths(rule: Pick<Rule, "threshold" | "groupBy">): readonly string[] {
  return rule.threshold ? pathList(rule.threshold.group_by) : pathList(rule.groupBy);
}
