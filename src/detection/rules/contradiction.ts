import { foldCase } from "../../lib/text.ts";
import { unreachable } from "../../lib/unreachable.ts";
import {
  isNegation,
  isRelation,
  OPERATORS,
  type Condition,
  type FieldTest,
  type Operator,
  type OperatorName,
  type Scalar,
} from "../../model/condition.ts";
import { ANY_FIELD, ANY_RAW_FIELD, isAnyField } from "../../model/field.ts";

// Proves that no event can match a condition. The proof is sound but not complete: it finds the contradictions that people
// write, and everything that it reports is one.

/** Tests examined for one condition. A proof that takes more is abandoned. */
const STEPS_MAX = 300_000;
const SHOWN_VALUES_MAX = 3;

/** Fields with at most one value: top-level fields, and those of the header of a Windows event. */
const SINGLE_VALUED: ReadonlySet<string> = new Set([
  "type",
  "source",
  "class",
  "severity",
  "raw.Channel",
  "raw.EventID",
]);

/** Operators whose result depends only on the folded value if case is ignored. */
const FOLDING: ReadonlySet<OperatorName> = new Set([
  "equals",
  "in",
  "contains",
  "starts_with",
  "prefix",
  "ends_with",
  "glob",
]);

/** A test that must hold, or must not hold. */
interface FormulaLiteral {
  readonly kind: "literal";
  readonly test: FieldTest;
  readonly holds: boolean;
}

/** A condition in negation normal form. */
type Formula = FormulaLiteral | { readonly kind: "all" | "any"; readonly of: readonly Formula[] };

/** The reason why no event can match; undefined if there is no proof. */
export function contradictionOf(condition: Condition): string | undefined {
  return new Proof().refute([toFormula(condition, true)], []);
}

function toFormula(condition: Condition, holds: boolean): Formula {
  switch (condition.kind) {
    case "all":
    case "any":
      return {
        kind: (condition.kind === "all") === holds ? "all" : "any",
        of: condition.of.map((part) => toFormula(part, holds)),
      };
    case "not":
      return toFormula(condition.of, !holds);
    case "test":
      return toLiterals(condition, holds);
    default:
      return unreachable(condition);
  }
}

function toLiterals(test: FieldTest, holds: boolean): Formula {
  const { operator } = test;
  const exists: FieldTest = { ...test, operator: "exists", value: true, ignoreCase: false };
  if (operator === "exists") return { kind: "literal", test: exists, holds: holds === test.value };
  if (isNegation(operator)) {
    const positive = withoutAlias({ ...test, operator: OPERATORS[operator].negationOf });
    return {
      kind: holds ? "all" : "any",
      of: [
        { kind: "literal", test: exists, holds },
        { kind: "literal", test: positive, holds: !holds },
      ],
    };
  }
  return { kind: "literal", test: withoutAlias(test), holds };
}

function withoutAlias(test: FieldTest): FieldTest {
  return test.operator === "prefix" ? { ...test, operator: "starts_with" } : test;
}

class Proof {
  #stepsLeft = STEPS_MAX;

  /** The reason why these formulas and the known literals cannot all hold. */
  refute(formulas: readonly Formula[], known: readonly FormulaLiteral[]): string | undefined {
    const literals = [...known];
    let choices: (readonly Formula[])[] = [];
    let fresh = [...formulas];
    for (;;) {
      const { literals: found, choices: more } = flatten(fresh);
      literals.push(...found);
      choices.push(...more);
      const clash = this.#clash(literals, found);
      if (clash !== undefined) return clash;
      fresh = [];
      const open: (readonly Formula[])[] = [];
      for (const branches of choices) {
        let reason: string | undefined;
        const possible = branches.filter((branch) => {
          const why = this.refute([branch], literals);
          reason ??= why;
          return why === undefined;
        });
        if (possible.length === 0) return reason;
        // The last branch of a choice must hold, and may rule out branches of others.
        if (possible.length === 1) fresh.push(possible[0]!);
        else open.push(possible);
      }
      if (fresh.length === 0) return undefined;
      choices = open;
    }
  }

  /** A required test without a possible value. Only fields that the fresh literals concern are examined. */
  #clash(literals: readonly FormulaLiteral[], fresh: readonly FormulaLiteral[]): string | undefined {
    this.#stepsLeft -= literals.length;
    if (this.#stepsLeft < 0) return undefined;
    const required = literals.filter(({ holds }) => holds).map(({ test }) => test);
    const excluded = literals.filter(({ holds }) => !holds).map(({ test }) => test);
    for (const test of required) {
      if (!fresh.some((literal) => covers(literal.test.field, test.field))) continue;
      const against = excluded.filter(({ field }) => covers(field, test.field));
      const beside = SINGLE_VALUED.has(test.field)
        ? required.filter((other) => other !== test && other.field === test.field)
        : [];
      const objections: string[] = [];
      const isRuledOut = valuesOf(test).every((value) => {
        const objection = this.#objection({ ...test, value }, against, beside);
        if (objection !== undefined) objections.push(objection);
        return objection !== undefined;
      });
      if (isRuledOut && objections.length > 0) return `${shown(test)} contradicts ${objections[0]}`;
    }
    return undefined;
  }

  #objection(test: FieldTest, against: readonly FieldTest[], beside: readonly FieldTest[]): string | undefined {
    this.#stepsLeft -= against.length + beside.length;
    if (this.#stepsLeft < 0) return undefined;
    const excluded = against.find((other) => implies(test, other));
    if (excluded) return `not ${shown(excluded)}`;
    const other = beside.find((candidate) => excludes(test, candidate));
    return other && shown(other);
  }
}

function flatten(formulas: readonly Formula[]): { literals: FormulaLiteral[]; choices: (readonly Formula[])[] } {
  const literals: FormulaLiteral[] = [];
  const choices: (readonly Formula[])[] = [];
  const visit = (formula: Formula): void => {
    if (formula.kind === "literal") literals.push(formula);
    else if (formula.kind === "all") formula.of.forEach(visit);
    else choices.push(formula.of);
  };
  formulas.forEach(visit);
  return { literals, choices };
}

/** True if every value of the inner field is a value of the outer field. */
function covers(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  if (outer === ANY_RAW_FIELD) return inner.startsWith("raw.");
  return outer === ANY_FIELD && (inner === "type" || /^(raw|enrichment)\./.test(inner));
}

function valuesOf({ value }: FieldTest): readonly Scalar[] {
  return Array.isArray(value) ? (value as readonly Scalar[]) : [value as Scalar];
}

/** True if every value that passes the first test, which has one value, passes the other. */
function implies(test: FieldTest, other: FieldTest): boolean {
  if (other.operator === "exists") return test.field === other.field;
  if (test.operator === "exists") return false;
  const [value] = valuesOf(test) as [Scalar];
  if (test.operator === other.operator && test.ignoreCase === other.ignoreCase && valuesOf(other).includes(value)) {
    return test.field === other.field || !isRelation(test.operator);
  }
  if (isEquality(test)) return resultFor(value, test, other) === true;
  return typeof value === "string" && impliesText(value, test, other);
}

/** True if no value that passes the first test, which has one value, passes the other. */
function excludes(test: FieldTest, other: FieldTest): boolean {
  if (!isEquality(test) || other.operator === "exists" || isRelation(other.operator)) return false;
  const [value] = valuesOf(test) as [Scalar];
  // If the other test fails case-insensitively, it also fails case-sensitively.
  const lenient = test.ignoreCase && FOLDING.has(other.operator) ? { ...other, ignoreCase: true } : other;
  return resultFor(value, test, lenient) === false;
}

/** The result of the other test for every value that equals this one; undefined if that is not determined. */
function resultFor(value: Scalar, { ignoreCase, field }: FieldTest, other: FieldTest): boolean | undefined {
  if (field === "timestamp" || isRelation(other.operator)) return undefined;
  const isExact = typeof value !== "string" || !ignoreCase || isCaseless(value);
  if (!isExact && !(other.ignoreCase && FOLDING.has(other.operator))) return undefined;
  const fold = other.ignoreCase ? foldCase : (text: string) => text;
  const operator = OPERATORS[other.operator] as Operator;
  return operator.test(other.value, { fold, ignoreCase: other.ignoreCase, field: other.field })(value);
}

/** True if every text with this prefix, suffix or substring passes the other test. */
function impliesText(piece: string, test: FieldTest, other: FieldTest): boolean {
  if (test.ignoreCase && !other.ignoreCase) return false;
  const fold = other.ignoreCase ? foldCase : (text: string) => text;
  const has = PIECES[`${test.operator} ${other.operator}`];
  return (
    has !== undefined &&
    piece.isWellFormed() &&
    valuesOf(other).some(
      (wanted) => typeof wanted === "string" && wanted.isWellFormed() && has(fold(piece), fold(wanted)),
    )
  );
}

const PIECES: Readonly<Record<string, ((piece: string, wanted: string) => boolean) | undefined>> = {
  "contains contains": (piece, wanted) => piece.includes(wanted),
  "starts_with contains": (piece, wanted) => piece.includes(wanted),
  "ends_with contains": (piece, wanted) => piece.includes(wanted),
  "starts_with starts_with": (piece, wanted) => piece.startsWith(wanted),
  "ends_with ends_with": (piece, wanted) => piece.endsWith(wanted),
};

function isEquality({ operator, field }: FieldTest): boolean {
  return (operator === "equals" || operator === "in") && !isAnyField(field);
}

function isCaseless(text: string): boolean {
  return text.toLowerCase() === text && text.toUpperCase() === text;
}

function shown(test: FieldTest): string {
  const values = valuesOf(test);
  const some = values.slice(0, SHOWN_VALUES_MAX).map((value) => JSON.stringify(value));
  const more = values.length > SHOWN_VALUES_MAX ? ` and ${values.length - SHOWN_VALUES_MAX} more` : "";
  return `${test.field} ${test.operator} ${some.join(", ")}${more}`;
}
