import type { Condition, Scalar } from "../../model/condition.ts";

// Selected fields of many events at once, for simulations of rules over millions of them.

export interface Projection {
  readonly condition: Condition;
  readonly fields: readonly string[];
  /** Conditions to evaluate for each event; at most 31. */
  readonly tests?: readonly Condition[] | undefined;
}

/** A part of the matching events, oldest first by timestamp and id; in columns, since millions of objects would cost more than all the rest. */
export interface ProjectedEvents {
  readonly length: number;
  /** A number for each event. Of events with the same timestamp, the first to arrive has the smallest. */
  readonly seqs: Float64Array;
  readonly timesMs: Float64Array;
  /** Bit n is set when the event passes test n. */
  readonly passed: Int32Array;
  /** One for each field, in the given order. */
  readonly columns: readonly ProjectedColumn[];
}

export interface ProjectedColumn {
  /** For each event the number of its values. Two numbers may stand for the same values; 0 stands for none. */
  readonly numbers: Int32Array;
  /** For each number the distinct values at the field's path. A different list where the numbering starts over. */
  readonly values: readonly (readonly Scalar[])[];
}

/** The values of one event in each field. */
export function projectedValues({ columns }: ProjectedEvents, place: number): readonly (readonly Scalar[])[] {
  return columns.map(({ numbers, values }) => values[numbers[place]!]!);
}
