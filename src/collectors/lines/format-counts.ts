import { GENERIC } from "../formats/generic/generic.ts";
import type { LineFormats } from "../formats/line-formats.ts";

/** Lines that each format has read. */
export class FormatCounts {
  readonly #lines = new Map<string, number>();

  /** Null: no format read the line. */
  add(format: string | null): void {
    if (format !== null) this.#lines.set(format, (this.#lines.get(format) ?? 0) + 1);
  }

  /** Forgets formats that there are no more. */
  keepOnly({ all }: LineFormats): void {
    const names = new Set([...all.map(({ name }) => name), GENERIC]);
    for (const name of this.#lines.keys()) if (!names.has(name)) this.#lines.delete(name);
  }

  get byFormat(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#lines);
  }
}
