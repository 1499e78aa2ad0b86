import { parseCidr, rangeHolds } from "../../lib/ip.ts";
import { includesText } from "../../lib/find-text.ts";
import { foldCase } from "../../lib/text.ts";
import { unreachable } from "../../lib/unreachable.ts";
import {
  isNegation,
  OPERATORS,
  type Condition,
  type FieldTest,
  type Operator,
  type Scalar,
} from "../../model/condition.ts";
import type { FieldValue } from "../../model/field.ts";
import type { EventFacts } from "./event-facts.ts";
import type { Predicate } from "./predicate.ts";
import type { RulePatterns } from "./rule-patterns.ts";
import { compileRegex } from "./rule-regex.ts";
import { compileRelation } from "./relations.ts";

// Compiles conditions into closures over the facts of one event. compileCondition of the model defines their meaning; this
// version is faster, since fields are read, folded and parsed once for all rules.

/** Shared state of compiled conditions. The owner calls `releases` when it drops the predicate. */
export interface CompileContext {
  readonly facts: EventFacts;
  readonly patterns: RulePatterns;
  readonly releases: (() => void)[];
}

/** `isPositive` is false below an odd number of `not`, where a failed test helps the rule to match. */
export function compilePredicate(condition: Condition, context: CompileContext, isPositive = true): Predicate {
  switch (condition.kind) {
    case "all":
      return allOf(condition.of.map((part) => compilePredicate(part, context, isPositive)));
    case "any":
      return anyOf(condition.of.map((part) => compilePredicate(part, context, isPositive)));
    case "not": {
      const part = compilePredicate(condition.of, context, !isPositive);
      return () => !part();
    }
    case "test":
      return compileTest(condition, context, isPositive);
    default:
      return unreachable(condition);
  }
}

function allOf(parts: readonly Predicate[]): Predicate {
  if (parts.length === 1) return parts[0]!;
  const [first, second] = parts;
  if (parts.length === 2) return () => first!() && second!();
  return () => {
    for (let i = 0; i < parts.length; i++) if (!parts[i]!()) return false;
    return true;
  };
}

function anyOf(parts: readonly Predicate[]): Predicate {
  if (parts.length === 1) return parts[0]!;
  return () => {
    for (let i = 0; i < parts.length; i++) if (parts[i]!()) return true;
    return false;
  };
}

function compileTest(test: FieldTest, context: CompileContext, isPositive: boolean): Predicate {
  const { facts, patterns, releases } = context;
  const slotOf = (path: string) => {
    const slot = facts.acquire(path);
    releases.push(() => facts.release(slot));
    return slot;
  };
  const { operator: name, value, ignoreCase } = test;
  const slot = slotOf(test.field);
  if (isNegation(name)) {
    const positive = compileTest({ ...test, operator: OPERATORS[name].negationOf }, context, !isPositive);
    return () => facts.values(slot).length > 0 && !positive();
  }
  const read = ignoreCase ? () => facts.folded(slot) : () => facts.values(slot);
  const foldedTexts = () => texts(value).map((text) => (ignoreCase ? foldCase(text) : text));
  switch (name) {
    case "exists":
      return () => facts.values(slot).length > 0 === value;
    case "contains":
      return textTest(read, foldedTexts(), includesText);
    case "starts_with":
    case "prefix":
      return textTest(read, foldedTexts(), (text, part) => text.startsWith(part));
    case "ends_with":
      return textTest(read, foldedTexts(), (text, part) => text.endsWith(part));
    case "equals":
    case "in":
      return membershipTest(read, value, ignoreCase);
    case "cidr": {
      const ranges = texts(value).map((network) => parseCidr(network)!);
      return () => facts.addresses(slot).some((address) => ranges.some((range) => rangeHolds(range, address)));
    }
    case "regex": {
      const tests = texts(value).map((pattern) => patterns.acquire(test.field, pattern, ignoreCase));
      for (const each of tests) releases.push(() => each.release());
      return compileRegex(tests, patterns, {
        values: () => facts.values(slot),
        guarded: () => facts.guarded(slot),
        isPositive,
      });
    }
    case "equals_field":
    case "contains_field":
    case "starts_with_field":
    case "ends_with_field": {
      const other = slotOf(value as string);
      const others = ignoreCase ? () => facts.folded(other) : () => facts.values(other);
      return compileRelation(name, patterns, { values: read, others, isPositive });
    }
    case "glob":
    case "gt":
    case "gte":
    case "lt":
    case "lte":
    case "during":
    case "time_part": {
      const fold = ignoreCase ? foldCase : identity;
      const holds = (OPERATORS[name] as Operator).test(value, { fold, ignoreCase, field: test.field });
      return () => facts.values(slot).some(holds);
    }
    default:
      return unreachable(name);
  }
}

const identity = (text: string): string => text;

function texts(value: FieldTest["value"]): readonly string[] {
  return (Array.isArray(value) ? value : [value]) as readonly string[];
}

function textTest(
  read: () => readonly FieldValue[],
  parts: readonly string[],
  compare: (text: string, part: string) => boolean,
): Predicate {
  return () => {
    const values = read();
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (typeof value !== "string") continue;
      for (let j = 0; j < parts.length; j++) if (compare(value, parts[j]!)) return true;
    }
    return false;
  };
}

function membershipTest(read: () => readonly FieldValue[], value: FieldTest["value"], ignoreCase: boolean): Predicate {
  const items = (Array.isArray(value) ? value : [value]) as readonly Scalar[];
  const set = new Set<FieldValue>(
    items.map((item) => (ignoreCase && typeof item === "string" ? foldCase(item) : item)),
  );
  const [only] = set;
  if (set.size === 1) {
    return () => {
      const values = read();
      for (let i = 0; i < values.length; i++) if (values[i] === only) return true;
      return false;
    };
  }
  return () => {
    const values = read();
    for (let i = 0; i < values.length; i++) if (set.has(values[i]!)) return true;
    return false;
  };
}
