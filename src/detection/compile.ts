import { parseCidr, rangeHolds } from "../lib/ip.ts";
import { foldCase } from "../lib/text.ts";
import { OPERATORS, type Condition, type FieldTest, type Scalar } from "../model/condition.ts";
import type { FieldValue } from "../model/field.ts";
import type { Facts } from "./facts.ts";
import type { Patterns } from "./patterns.ts";
import { compileRegex } from "./regex.ts";

// Conditions as closures over the facts of one event. What they mean is said by compileCondition of the model; here the
// same answers are reached faster: fields are read, folded and parsed once, whatever number of rules asks.

export type Predicate = () => boolean;

/** What a compiled condition was made with; whoever made it calls the releases when it is no longer needed. */
export interface Workshop {
  readonly facts: Facts;
  readonly patterns: Patterns;
  readonly releases: (() => void)[];
}

/** `isWanted` is false below an odd number of `not`: there, the rule gains by a test that does not hold. */
export function compile(condition: Condition, workshop: Workshop, isWanted = true): Predicate {
  switch (condition.kind) {
    case "all":
      return allOf(condition.of.map((part) => compile(part, workshop, isWanted)));
    case "any":
      return anyOf(condition.of.map((part) => compile(part, workshop, isWanted)));
    case "not": {
      const part = compile(condition.of, workshop, !isWanted);
      return () => !part();
    }
    case "test":
      return compileTest(condition, workshop, isWanted);
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

function compileTest(test: FieldTest, { facts, patterns, releases }: Workshop, isWanted: boolean): Predicate {
  const slotOf = (path: string) => {
    const slot = facts.acquire(path);
    releases.push(() => facts.release(slot));
    return slot;
  };
  const { operator: name, value, ignoreCase } = test;
  const slot = slotOf(test.field);
  const read = ignoreCase ? () => facts.folded(slot) : () => facts.values(slot);
  const wanted = () => texts(value).map((text) => (ignoreCase ? foldCase(text) : text));
  switch (name) {
    case "exists":
      return () => facts.values(slot).length > 0 === value;
    case "contains":
      return textTest(read, wanted(), (text, part) => text.includes(part));
    case "starts_with":
    case "prefix":
      return textTest(read, wanted(), (text, part) => text.startsWith(part));
    case "ends_with":
      return textTest(read, wanted(), (text, part) => text.endsWith(part));
    case "equals":
    case "in":
      return amongTest(read, value, ignoreCase);
    case "not_equals":
    case "not_in": {
      const among = amongTest(read, value, ignoreCase);
      return () => facts.values(slot).length > 0 && !among();
    }
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
        isWanted,
      });
    }
    case "equals_field":
    case "contains_field":
    case "starts_with_field":
    case "ends_with_field": {
      const { relation } = OPERATORS[name];
      const other = slotOf(value as string);
      const readOther = ignoreCase ? () => facts.folded(other) : () => facts.values(other);
      return () => {
        const others = readOther();
        return others.length > 0 && read().some((a) => others.some((b) => relation!(a, b, asItIs)));
      };
    }
    default: {
      const fold = ignoreCase ? foldCase : asItIs;
      const holds = (OPERATORS[name] as unknown as PlainOperator).test(value, { fold, ignoreCase, field: test.field });
      return () => facts.values(slot).some(holds);
    }
  }
}

interface PlainOperator {
  test(
    value: FieldTest["value"],
    options: { readonly fold: (text: string) => string; readonly ignoreCase: boolean; readonly field: string },
  ): (value: FieldValue) => boolean;
}

const asItIs = (text: string): string => text;

function texts(value: FieldTest["value"]): readonly string[] {
  return (Array.isArray(value) ? value : [value]) as readonly string[];
}

function textTest(
  read: () => readonly FieldValue[],
  wanted: readonly string[],
  compare: (text: string, part: string) => boolean,
): Predicate {
  return () => {
    const values = read();
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (typeof value !== "string") continue;
      for (let j = 0; j < wanted.length; j++) if (compare(value, wanted[j]!)) return true;
    }
    return false;
  };
}

function amongTest(read: () => readonly FieldValue[], value: FieldTest["value"], ignoreCase: boolean): Predicate {
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
