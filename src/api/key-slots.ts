import type { ApiKey } from "../model/key.ts";
import { Problem } from "./problems.ts";

export interface KeySlotsOptions {
  /** What is counted, as in "2 simulations". */
  readonly what: string;
  readonly max: number;
  readonly perKeyMax: number;
  readonly retrySeconds: number;
}

/** Bounds how much of something expensive is in flight: in all, and for one key, so that no key shuts out the others. */
export class KeySlots {
  readonly #options: KeySlotsOptions;
  readonly #perKey = new Map<string, number>();
  #inFlight = 0;

  constructor(options: KeySlotsOptions) {
    this.#options = options;
  }

  /** Takes a slot for as long as the work takes; a 429 where the key has its share, a 503 where none is left. */
  async hold<Value>({ id }: ApiKey, work: () => Promise<Value>): Promise<Value> {
    const { what, max, perKeyMax, retrySeconds } = this.#options;
    const headers = { "Retry-After": String(retrySeconds) };
    const own = this.#perKey.get(id) ?? 0;
    if (own >= perKeyMax) {
      const message = `the key has ${own} of at most ${perKeyMax} ${what} under way; try again when one is done`;
      throw new Problem("rate_limited", message, { headers });
    }
    if (this.#inFlight >= max) {
      throw new Problem("unavailable", `${max} ${what} are under way; try again when one is done`, { headers });
    }
    this.#inFlight++;
    this.#perKey.set(id, own + 1);
    try {
      return await work();
    } finally {
      this.#inFlight--;
      const left = this.#perKey.get(id)! - 1;
      if (left > 0) this.#perKey.set(id, left);
      else this.#perKey.delete(id);
    }
  }
}
