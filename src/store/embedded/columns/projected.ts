import type { Scalar } from "../../../model/condition.ts";
import type { ProjectedEvents } from "../../store.ts";
import type { ProjectedRows } from "./projection.ts";

const NO_VALUES: readonly Scalar[] = [];

/** Reads the parts of one projection, in their order: what a number stands for is told once. */
export function projectedEvents(): (rows: ProjectedRows) => ProjectedEvents {
  /** By field, by number. */
  const known: (readonly Scalar[])[][] = [];
  return ({ seqs, times, passed, columns }) => ({
    length: seqs.length,
    seqs,
    timesMs: times,
    passed,
    columns: columns.map(({ numbers, told }, field) => {
      const isAnew = told.length > 0 && known[field]?.[told[0]![0]] !== undefined;
      const values = isAnew ? [NO_VALUES] : (known[field] ?? [NO_VALUES]);
      known[field] = values;
      for (const [number, list] of told) values[number] = list;
      return { numbers, values };
    }),
  });
}
