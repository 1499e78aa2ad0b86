import type { Exporter } from "../exporter.ts";

/** Templates in all, and of one exporter: a real one has a dozen. */
export const TEMPLATES_MAX = 10_000;
export const EXPORTER_TEMPLATES_MAX = 1000;

/** Counts templates, so that made-up exporters cannot fill the memory with them. */
export class TemplateRoom {
  used = 0;
  readonly #forget: (except: Exporter) => boolean;

  /** `forget` lets go of someone who has sent templates and never a flow; false where there is nobody. */
  constructor(forget: (except: Exporter) => boolean) {
    this.#forget = forget;
  }

  admit(exporter: Exporter): boolean {
    if (exporter.templates >= EXPORTER_TEMPLATES_MAX) return false;
    if (this.used >= TEMPLATES_MAX && !this.#forget(exporter)) return false;
    this.used++;
    exporter.templates++;
    return true;
  }

  release(exporter: Exporter, count: number): void {
    this.used -= count;
    exporter.templates -= count;
  }
}
