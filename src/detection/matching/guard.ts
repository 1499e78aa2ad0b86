import { unreachable } from "../../lib/unreachable.ts";
import {
  isNegation,
  isRelation,
  OPERATORS,
  type Condition,
  type FieldTest,
  type Scalar,
} from "../../model/condition.ts";
import { isTopField, type FieldValue } from "../../model/field.ts";
import { globPieces } from "../../model/glob.ts";
import { guardText } from "../../model/guard-text.ts";
import { requiredLiterals } from "../../model/required-literals.ts";

// The guard of a rule is a set of simple facts of which at least one holds whenever the rule holds. The matcher looks up rules
// by these facts, so that an event only meets rules that it has something in common with. Guards ignore case; the rule
// itself checks the rest.

export type Guard =
  | { readonly kind: "equals"; readonly field: string; readonly value: Scalar }
  | { readonly kind: "prefix" | "suffix" | "contains"; readonly field: string; readonly text: string }
  | { readonly kind: "present"; readonly field: string };

/** Estimates the share of events that a guard lets through. */
export type WeighGuard = (guard: Guard) => number;

export interface GuardChoice {
  readonly guards: readonly Guard[];
  readonly weight: number;
}

export function guardValue(value: FieldValue): FieldValue {
  return typeof value === "string" ? guardText(value) : value;
}

/** The most selective guard of a condition; undefined if it has none, so that the rule must run on every event. */
export function chooseGuard(condition: Condition, weigh: WeighGuard): GuardChoice | undefined {
  switch (condition.kind) {
    case "all": {
      const choices = condition.of.map((part) => chooseGuard(part, weigh)).filter((choice) => choice !== undefined);
      return choices.length === 0 ? undefined : choices.reduce((a, b) => (b.weight < a.weight ? b : a));
    }
    case "any": {
      const guards: Guard[] = [];
      let weight = 0;
      for (const part of condition.of) {
        const choice = chooseGuard(part, weigh);
        if (!choice) return undefined;
        guards.push(...choice.guards);
        weight += choice.weight;
      }
      return { guards, weight: Math.min(1, weight) };
    }
    case "not":
      return condition.of.kind === "not" ? chooseGuard(condition.of.of, weigh) : undefined;
    case "test": {
      const guards = guardsOfTest(condition);
      return (
        guards && {
          guards,
          weight: Math.min(
            1,
            guards.reduce((sum, guard) => sum + weigh(guard), 0),
          ),
        }
      );
    }
    default:
      return unreachable(condition);
  }
}

function guardsOfTest(test: FieldTest): readonly Guard[] | undefined {
  const { field, operator } = test;
  const present: readonly Guard[] | undefined = isTopField(field) ? undefined : [{ kind: "present", field }];
  const values = (Array.isArray(test.value) ? test.value : [test.value]) as readonly Scalar[];
  const texts = (kind: "prefix" | "suffix" | "contains") => {
    const folded = values.map((value) => guardText(value as string));
    // A lone surrogate folds differently from its pair.
    return values.every((value) => (value as string).isWellFormed())
      ? [...new Set(folded)].map((text): Guard => ({ kind, field, text }))
      : present;
  };
  // These need a value, if only to see that it is a different one.
  if (isNegation(operator) || isRelation(operator)) return present;
  if (operator === "exists") return test.value === true ? present : undefined;
  const { literal } = OPERATORS[operator];
  switch (literal) {
    case "whole":
      return values.map((value) => ({
        kind: "equals",
        field,
        value: typeof value === "string" ? guardText(value) : value,
      }));
    case "inside":
      return texts("contains");
    case "start":
      return texts("prefix");
    case "end":
      return texts("suffix");
    case "glob":
      return every(values as readonly string[], (glob) => globGuard(field, glob)) ?? present;
    case "pattern":
      return (
        every(values as readonly string[], (pattern) =>
          requiredLiterals(pattern, test.ignoreCase)[0]?.map((text): Guard => ({ kind: "contains", field, text })),
        )?.flat() ?? present
      );
    case "none":
      return present;
    default:
      return unreachable(literal);
  }
}

function every<Item, Result>(items: readonly Item[], make: (item: Item) => Result | undefined): Result[] | undefined {
  const made: Result[] = [];
  for (const item of items) {
    const result = make(item);
    if (result === undefined) return undefined;
    made.push(result);
  }
  return made;
}

/** A guard for the longest literal of the glob. */
function globGuard(field: string, glob: string): Guard | undefined {
  if (!glob.isWellFormed()) return undefined;
  const pieces = globPieces(glob);
  const runs = pieces.flatMap((piece, index) => {
    const found: { text: string; isFirst: boolean; isLast: boolean }[] = [];
    let text = "";
    let begin = 0;
    for (const [i, char] of [...piece, undefined].entries()) {
      if (char !== undefined) {
        text += char;
        continue;
      }
      const isFirst = index === 0 && begin === 0;
      const isLast = index === pieces.length - 1 && i === piece.length;
      if (text !== "") found.push({ text, isFirst, isLast });
      text = "";
      begin = i + 1;
    }
    return found;
  });
  if (runs.length === 0) return undefined;
  const longest = runs.reduce((a, b) => (b.text.length > a.text.length ? b : a));
  const text = guardText(longest.text);
  if (longest.isFirst && longest.isLast && pieces.length === 1) return { kind: "equals", field, value: text };
  return { kind: longest.isFirst ? "prefix" : longest.isLast ? "suffix" : "contains", field, text };
}

const FEW_VALUES = new Set(["type", "source", "class", "severity"]);

/** The estimate without a traffic sample. */
export function guessWeight(guard: Guard): number {
  if (guard.kind === "present") return 0.6;
  if (FEW_VALUES.has(guard.field)) return 0.3;
  if (guard.kind === "equals") return 0.02;
  const { length } = guard.text;
  const rarity = length >= 8 ? 0.01 : length >= 5 ? 0.02 : length >= 4 ? 0.04 : length >= 2 ? 0.2 : 0.5;
  return guard.kind === "contains" ? rarity : rarity * 2;
}
