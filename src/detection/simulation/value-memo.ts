import type { Scalar } from "../../model/condition.ts";
import type { ProjectedColumn } from "../../store/ports/projection.ts";

/** Memoises a function of the values of a projected field, by their dictionary number. */
export class ValueMemo<T> {
  readonly #compute: (values: readonly Scalar[]) => T;
  #values: ProjectedColumn["values"] = [];
  #results: T[] = [];

  constructor(compute: (values: readonly Scalar[]) => T) {
    this.#compute = compute;
  }

  /** The results for the dictionary of this column. */
  of({ values }: ProjectedColumn): readonly T[] {
    if (values !== this.#values) this.#results = [];
    this.#values = values;
    for (let number = this.#results.length; number < values.length; number++)
      this.#results.push(this.#compute(values[number]!));
    return this.#results;
  }
}
