import { formatTime } from "../../../lib/time.ts";
import type { Scalar } from "../../../model/condition.ts";
import type { ProjectedEvents } from "../../store.ts";
import type { ProjectedRows } from "./projection.ts";
import type { ProjectedColumn } from "./projection-field.ts";

const NO_VALUES: readonly Scalar[] = [];

/** Reads the parts of one projection, each before the next: what a number stands for is said once. */
export function projectedEvents(): (rows: ProjectedRows) => ProjectedEvents {
  /** By field, by number. */
  const known: (readonly Scalar[])[][] = [];
  const readerOf = (column: ProjectedColumn, field: number, times: Float64Array) => {
    switch (column.kind) {
      case "none":
        return () => NO_VALUES;
      case "times":
        return (row: number) => [formatTime(times[row]!)];
      case "numbers":
        return (row: number) => (Number.isNaN(column.numbers[row]!) ? NO_VALUES : [column.numbers[row]!]);
      case "codes": {
        const values = (known[field] ??= [NO_VALUES]);
        const { codes } = column;
        for (const [code, value] of column.values) values[code] = value;
        return (row: number) => values[codes[row]!]!;
      }
    }
  };
  return ({ seqs, times, passed, columns }) => {
    const readers = columns.map((column, field) => readerOf(column, field, times));
    return {
      length: seqs.length,
      seqs,
      timesMs: times,
      passed,
      valuesOf: (place) => readers.map((read) => read(place)),
    };
  };
}
