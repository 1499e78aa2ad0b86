import type { Scalar } from "../../model/condition.ts";

// The values of one field, by slot, in the form that conditions, sorting and aggregations read. A column is valid until the
// next change of an alert.

/** Values by code. A slot has any number of codes. */
export interface CodedColumn {
  readonly kind: "codes";
  /** All codes are below it. */
  readonly end: number;
  /** Undefined for a code that is not in use. */
  valueOf(code: number): Scalar | undefined;
  /** Present where it is cheaper than a test of every code. */
  codeOf?(value: Scalar): number | undefined;
  count(slot: number): number;
  at(slot: number, index: number): number;
  /** Set if the order of the codes is that of the values, as in a closed set. */
  readonly isOrdered?: true;
  /** Set if several codes may have the same value. */
  readonly sharesValues?: true;
  /** True for a slot without a code that still has a value, without content. */
  hasObject?(slot: number): boolean;
}

/** At most one number by slot; NaN for none. */
export interface NumberColumn {
  readonly kind: "numbers";
  readonly isTime: boolean;
  at(slot: number): number;
}

export type SlotColumn = CodedColumn | NumberColumn;

/** The same column with one code for each value. Codes are given out as they are met. */
export function withUniqueCodes(column: CodedColumn): CodedColumn {
  if (!column.sharesValues) return column;
  const values: Scalar[] = [];
  const codes = new Map<Scalar, number>();
  const own = new Int32Array(column.end).fill(-1);
  const codeOf = (code: number): number => {
    if (own[code]! >= 0) return own[code]!;
    const value = column.valueOf(code)!;
    let known = codes.get(value);
    if (known === undefined) {
      known = values.push(value) - 1;
      codes.set(value, known);
    }
    return (own[code] = known);
  };
  return {
    kind: "codes",
    end: column.end,
    valueOf: (code) => values[code],
    count: (slot) => column.count(slot),
    at: (slot, index) => codeOf(column.at(slot, index)),
  };
}

/** A column that is filled slot by slot, with values of any type. */
export class CollectedColumn implements CodedColumn {
  readonly kind = "codes";
  readonly #values: Scalar[] = [];
  readonly #codes = new Map<Scalar, number>();
  readonly #lists = new Map<number, readonly number[]>();
  readonly #objects = new Set<number>();

  get end(): number {
    return this.#values.length;
  }

  set(slot: number, values: readonly (Scalar | symbol)[]): void {
    const plain = values.filter((value) => typeof value !== "symbol");
    if (plain.length < values.length) this.#objects.add(slot);
    if (plain.length > 0)
      this.#lists.set(
        slot,
        plain.map((value) => this.#acquire(value)),
      );
  }

  #acquire(value: Scalar): number {
    let code = this.#codes.get(value);
    if (code === undefined) {
      code = this.#values.push(value) - 1;
      this.#codes.set(value, code);
    }
    return code;
  }

  valueOf(code: number): Scalar | undefined {
    return this.#values[code];
  }

  count(slot: number): number {
    return this.#lists.get(slot)?.length ?? 0;
  }

  at(slot: number, index: number): number {
    return this.#lists.get(slot)![index]!;
  }

  hasObject(slot: number): boolean {
    return this.#objects.has(slot);
  }
}

/** Visits each code of a slot once. */
export function visitCodes(column: CodedColumn, slot: number, visit: (code: number) => void): void {
  const count = column.count(slot);
  if (count === 1) return visit(column.at(slot, 0));
  for (let i = 0; i < count; i++) {
    const code = column.at(slot, i);
    let isNew = true;
    for (let before = 0; before < i && isNew; before++) isNew = column.at(slot, before) !== code;
    if (isNew) visit(code);
  }
}

export function hasValue(column: SlotColumn, slot: number): boolean {
  if (column.kind === "numbers") return !Number.isNaN(column.at(slot));
  return column.count(slot) > 0 || (column.hasObject?.(slot) ?? false);
}

/** Numbers before texts before booleans in either direction; within a type, in the direction. */
export function compareScalars(a: Scalar, b: Scalar, direction: 1 | -1): number {
  return SORTED_TYPES.indexOf(typeOf(a)) - SORTED_TYPES.indexOf(typeOf(b)) || direction * compareWithin(a, b);
}

/** Texts before numbers before booleans, each ascending. */
export function compareKeys(a: Scalar, b: Scalar): number {
  return KEY_TYPES.indexOf(typeof a) - KEY_TYPES.indexOf(typeof b) || compareWithin(a, b);
}

const SORTED_TYPES = ["number", "string", "boolean"];
const KEY_TYPES = ["string", "number", "bigint", "boolean"];

function typeOf(value: Scalar): string {
  return typeof value === "bigint" ? "number" : typeof value;
}

function compareWithin(a: Scalar, b: Scalar): number {
  if (typeof a === "string") return compareTexts(a, b as string);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** As their UTF-8 bytes compare. */
function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    // A surrogate stands for a code point above all others.
    const [isHighX, isHighY] = [x >= 0xd800 && x <= 0xdfff, y >= 0xd800 && y <= 0xdfff];
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}
