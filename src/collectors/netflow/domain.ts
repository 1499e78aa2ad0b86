import type { Template } from "./template.ts";

/** Samplers that one observation domain may name. */
const SAMPLERS_MAX = 256;

/** What an exporter has told about one of its observation domains. */
export class Domain {
  readonly templates = new Map<number, Template>();
  /** When the exporter's clock of uptime began, where it said so. */
  systemStartMs: number | undefined;
  readonly #samplers = new Map<number, number>();
  #rate: number | undefined;

  setRate(sampler: number | undefined, rate: number): void {
    if (sampler === undefined) this.#rate = rate;
    else if (this.#samplers.has(sampler) || this.#samplers.size < SAMPLERS_MAX) this.#samplers.set(sampler, rate);
  }

  /** The rate of the sampler that a record names; of the domain where it names none. */
  rateOf(sampler: number | undefined): number {
    if (sampler !== undefined) return this.#samplers.get(sampler) ?? this.#rate ?? 1;
    if (this.#rate !== undefined) return this.#rate;
    // The only sampler there is needs no naming.
    return this.#samplers.size === 1 ? this.#samplers.values().next().value! : 1;
  }
}
