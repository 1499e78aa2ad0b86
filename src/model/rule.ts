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
import type { RuleInput } from "./rule-schema.ts";

export type { ExceptionInput, RuleInput, RuleReplacement } from "./rule-schema.ts";

// What a rule is: conditions on one event and, over several, a threshold, a sequence or a silence. The shape here is
// the shape in the API, in the store and in rule files. How it is checked stands in rule-schema.ts, which threads that
// never check one need not load.

export const ANY_SOURCE = "any";
export const CHANNELS = ["slack", "email", "webhook"] as const;
export type Channel = (typeof CHANNELS)[number];
export const WINDOW_MS_MAX = 7 * DAY_MS;
export const EXCEPTIONS_MAX = 100;
export const ENDED_EXCEPTIONS_MAX = 100;

/** An item of `conditions`: a test, or some of them under any, all or not. */
export type ConditionInput =
  | FieldTestInput
  | KeywordInput
  | { any: ConditionInput[] }
  | { all: ConditionInput[] }
  | { not: ConditionInput };

/** The list is AND. */
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
  /** It stops events that came after this one; null, and left out by what was stored before this was known: all of them. */
  readonly activeAfter?: string | null | undefined;
}

/** An exception that was taken away: what it stopped while it was there stays uncounted. */
export interface EndedException extends Pick<RuleException, "conditions" | "expiresAt" | "activeAfter"> {
  /** The last event that it was there for. */
  readonly upTo: string;
}

/** Where a rule was imported from: what filters that come later know it by. */
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

/** A rule as it is kept. */
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
  readonly threshold: {
    readonly count?: number | undefined;
    readonly group_by?: string | readonly string[] | undefined;
    readonly distinct?: string | readonly string[] | undefined;
    readonly sum?: string | undefined;
    readonly avg?: string | undefined;
    readonly percentile?: { readonly of: string; readonly rank: number } | undefined;
    readonly gte?: number | undefined;
    readonly gt?: number | undefined;
    readonly lte?: number | undefined;
    readonly lt?: number | undefined;
  } | null;
  readonly sequence:
    | readonly {
        readonly name: string;
        readonly conditions: readonly ConditionInput[];
        readonly count: number;
        readonly group_by?: string | readonly string[] | undefined;
        /** The step must not happen. */
        readonly absent?: boolean | undefined;
      }[]
    | null;
  readonly sequenceOrder: "in_order" | "any";
  /** So many of the steps are enough; null, and left out by what was stored before this was known: all of them. */
  readonly sequenceMin?: number | null | undefined;
  readonly groupBy: string | readonly string[] | null;
  readonly absence: string | null;
  readonly dedup: { readonly period: string; readonly by: string | readonly string[] | null };
  readonly exceptions: readonly RuleException[];
  /** Those that matches which the rule may still remember came under. */
  readonly endedExceptions?: readonly EndedException[] | undefined;
  readonly actions: readonly { readonly alert: { readonly channels: readonly Channel[] } }[];
  /** Null, and left out by what was stored before this was known: made here. */
  readonly origin?: RuleOrigin | null | undefined;
  readonly builtin: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Goes up with every change: two edits at once never mix. */
  readonly revision: number;
  /** The rule looks at events that came after this one; null: at all of them. */
  readonly activeAfter: string | null;
}

export interface RuleStats {
  readonly matches24h: number;
  readonly matches7d: number;
  readonly lastMatchAt: number | null;
}

/** What a person says of a rule, in the form in which it is kept; exceptions are given an id and an author by whoever keeps it. */
export type RuleBody = Omit<
  Rule,
  "id" | "builtin" | "createdAt" | "updatedAt" | "revision" | "activeAfter" | "exceptions" | "endedExceptions"
>;

export function toRuleBody(input: RuleInput): RuleBody {
  return {
    name: input.name,
    description: input.description,
    severity: input.severity,
    enabled: input.enabled,
    source: input.source,
    tags: input.tags,
    title: input.title ?? null,
    references: input.references,
    conditions: input.conditions,
    window: input.window ?? null,
    threshold: input.threshold ?? null,
    sequence: input.sequence ?? null,
    sequenceOrder: input.sequence_order,
    sequenceMin: input.sequence_min ?? null,
    groupBy: input.group_by ?? null,
    absence: input.absence ?? null,
    dedup: { period: input.dedup.period, by: input.dedup.by ?? null },
    actions: input.actions,
    origin: input.origin ?? null,
  };
}

/** What an event must be to count for the rule at this time: of the source, as the conditions say, and no exception. */
export function ruleCondition(
  rule: Pick<Rule, "source" | "conditions" | "sequence" | "exceptions">,
  nowMs: number,
): Condition {
  const parts: Condition[] = [];
  if (rule.source !== ANY_SOURCE) {
    parts.push({ kind: "test", field: "source", operator: "equals", value: rule.source, ignoreCase: false });
  }
  if (rule.conditions.length > 0) parts.push(toConditions(rule.conditions));
  if (rule.sequence) parts.push({ kind: "any", of: rule.sequence.map((step) => toConditions(step.conditions)) });
  for (const { conditions, expiresAt } of rule.exceptions) {
    if (expiresAt === null || expiresAt > nowMs) parts.push({ kind: "not", of: toConditions(conditions) });
  }
  return { kind: "all", of: parts };
}

/** Whether the sequence ends with a step that must not happen: only the clock can complete it. */
export function isOpenEnded({ sequence }: Pick<Rule, "sequence">): boolean {
  return sequence?.at(-1)?.absent === true;
}

/** Whether the rule fires when some time is over, and not when an event comes. */
export function isDecidedByClock({ sequence, threshold }: Pick<Rule, "sequence" | "threshold">): boolean {
  return isOpenEnded({ sequence }) || threshold?.lte !== undefined || threshold?.lt !== undefined;
}

/** The paths whose values keep alerts of the rule apart. */
export function foldPaths(rule: Pick<Rule, "dedup" | "threshold" | "groupBy">): readonly string[] {
  return rule.dedup.by === null ? groupPaths(rule) : pathList(rule.dedup.by);
}

export function groupPaths(rule: Pick<Rule, "threshold" | "groupBy">): readonly string[] {
  return rule.threshold ? pathList(rule.threshold.group_by) : pathList(rule.groupBy);
}
