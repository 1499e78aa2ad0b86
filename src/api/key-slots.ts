import type { ApiKey } from "../model/key.ts";
import { Problem } from "./problems.ts";

export interface KeySlotsOptions {
  /** The plural name of the work, as in "2 simulations". */
  readonly what: string;
  readonly max: number;
  readonly perKeyMax: number;
  readonly retrySeconds: number;
}

/** Limits expensive work in flight, in total and per key, so that one key cannot lock out the others. */
export class KeySlots {
  readonly #options: KeySlotsOptions;
  readonly #perKey = new Map<string, number>();
  #inFlight = 0;

  constructor(options: KeySlotsOptions) {
    this.#options = options;
  }

  /** Holds a slot while the work runs. Refuses with 429 at the limit of the key and with 503 at the total limit. */
  async hold<Value>({ id }: ApiKey, work: () => Promise<Value>): Promise<Value> {
    const { what, max, perKeyMax, retrySeconds } = this.#options;
    const headers = { "Retry-After": String(retrySeconds) };
    const own = this.#perKey.get(id) ?? 0;
    if (own >= perKeyMax) {
      const message = `the key has ${own} of at most ${perKeyMax} ${what} in flight; try again when one has finished`;
      throw new Problem("rate_limited", message, { headers });
    }
    if (this.#inFlight >= max) {
      throw new Problem("unavailable", `${max} ${what} are in flight, the maximum; try again when one has finished`, {
        headers,
      });
    }
    this.#inFlight++;
    this.#perKey.set(id, own + 1);
    try {
      return await work();
    } finally {
      this.#inFlight--;
      const remaining = this.#perKey.get(id)! - 1;
      if (remaining > 0) this.#perKey.set(id, remaining);
      else this.#perKey.delete(id);
    }
  }
}
