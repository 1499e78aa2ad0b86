import type { Scalar } from "../model/condition.ts";
import type { ProjectedColumn } from "../store/store.ts";

/** What follows from the values of a projected field, found out once for each number that stands for some. */
export class ByNumber<T> {
  readonly #find: (values: readonly Scalar[]) => T;
  #values: ProjectedColumn["values"] = [];
  #found: T[] = [];

  constructor(find: (values: readonly Scalar[]) => T) {
    this.#find = find;
  }

  /** By the numbers of this part's column. */
  of({ values }: ProjectedColumn): readonly T[] {
    if (values !== this.#values) this.#found = [];
    this.#values = values;
    for (let number = this.#found.length; number < values.length; number++)
      this.#found.push(this.#find(values[number]!));
    return this.#found;
  }
}
