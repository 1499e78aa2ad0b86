import type { Scalar } from "../../../model/condition.ts";
import type { ProjectedEvents } from "../../ports/projection.ts";
import type { ProjectedRows } from "./column-projection.ts";

const NO_VALUES: readonly Scalar[] = [];

/** Decodes the batches of one projection in order. The value of a number is sent once. */
export function projectionDecoder(): (rows: ProjectedRows) => ProjectedEvents {
  /** Known values by field and number. */
  const known: (readonly Scalar[])[][] = [];
  return ({ seqs, times, passed, columns }) => ({
    length: seqs.length,
    seqs,
    timesMs: times,
    passed,
    columns: columns.map(({ numbers, newValues }, field) => {
      // A number that is assigned again starts a new numbering.
      const startsOver = newValues.length > 0 && known[field]?.[newValues[0]![0]] !== undefined;
      const values = startsOver ? [NO_VALUES] : (known[field] ?? [NO_VALUES]);
      known[field] = values;
      for (const [number, list] of newValues) values[number] = list;
      return { numbers, values };
    }),
  });
}
