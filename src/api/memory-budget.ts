import type { ServerResponse } from "node:http";
import type { FastifyRequest } from "fastify";
import { clientNetwork, isLoopback } from "../lib/ip.ts";
import { Problem } from "./problems.ts";

// Limits the memory of concurrent large requests and responses, in total and per client.

/**
 * A memory budget for all request bodies in flight, or for all responses. An owner may hold no more than it leaves free: a
 * single owner gets half, two get a third each, and there is always room for a small body of another one. Fixed quotas
 * would either waste the budget while few clients are active or exhaust it once many are.
 */
export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #held = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The memory share of one request, charged to each of its owners. */
  share(owners: readonly string[]): MemoryShare {
    let taken = 0;
    return {
      take: (bytes) => {
        const free = this.#bytesMax - this.#bytes - bytes;
        if (free < 0 || owners.some((owner) => (this.#held.get(owner) ?? 0) + bytes > free)) return false;
        this.#charge(owners, bytes);
        taken += bytes;
        return true;
      },
      release: () => {
        this.#charge(owners, -taken);
        taken = 0;
      },
    };
  }

  #charge(owners: readonly string[], bytes: number): void {
    this.#bytes += bytes;
    for (const owner of owners) {
      const held = (this.#held.get(owner) ?? 0) + bytes;
      if (held > 0) this.#held.set(owner, held);
      else this.#held.delete(owner);
    }
  }
}

export interface MemoryShare {
  /** Returns false if the budget does not allow it. */
  take(bytes: number): boolean;
  /** Returns the memory; called once the request is answered. */
  release(): void;
}

/**
 * The owners that a request is charged to: its key and its address. A loopback address is left out, because it may be a proxy
 * that is missing from `trusted_proxies` and represents all clients.
 */
export function ownersOf({ apiKey, ip }: Pick<FastifyRequest, "apiKey" | "ip">): string[] {
  const owners = apiKey ? [`key ${apiKey.id}`] : [];
  if (!isLoopback(ip)) owners.push(`network ${clientNetwork(ip)}`);
  return owners;
}

const EXHAUSTED_RETRY_SECONDS = 1;

export function memoryExhausted(): Problem {
  return new Problem("unavailable", "too many large requests and responses in flight; try again later", {
    headers: { "Retry-After": String(EXHAUSTED_RETRY_SECONDS) },
  });
}

/** Responses up to this size are not charged. */
const SMALL_RESPONSE_CHARACTERS = 1024 * 1024;

export interface ResponseOwners {
  readonly owners: readonly string[];
  /** False for a response that reports a completed change, which must not be refused. */
  readonly mayRefuse: boolean;
}

/** Charges a large response until it is sent or its client has disconnected. */
export function holdResponseMemory(
  budget: MemoryBudget,
  characters: number,
  response: ServerResponse,
  { owners, mayRefuse }: ResponseOwners,
): void {
  // A client that has already disconnected emits no further close event, so nothing would return the memory.
  if (characters <= SMALL_RESPONSE_CHARACTERS || response.destroyed) return;
  const share = budget.share(owners);
  if (!share.take(characters) && mayRefuse) throw memoryExhausted();
  response.once("close", () => share.release());
}
