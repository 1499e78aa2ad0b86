import type { ServerResponse } from "node:http";
import type { FastifyRequest } from "fastify";
import { clientNetwork, isLoopback } from "../lib/ip.ts";
import { Problem } from "./problems.ts";

// Many large requests or answers at once must not fill the memory, and one client must not take it all.

/**
 * A memory budget for the bodies of all requests in flight, or for all answers. An owner may hold no more than it leaves
 * free: one alone gets a half, two get a third each, and a newcomer always finds room for a small body. Fixed quotas
 * would either waste the budget while few clients are active or run out once many are.
 */
export class Room {
  readonly #bytesMax: number;
  readonly #held = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The share of one request, charged to each of its owners. */
  share(owners: readonly string[]): Share {
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

export interface Share {
  /** False when there is no room. */
  take(bytes: number): boolean;
  /** Once the request is answered. */
  release(): void;
}

/**
 * To whom a request is charged: its key and its address. A loopback address is left out: behind it may be a proxy that
 * nobody named in `trusted_proxies`, and then it stands for every client there is.
 */
export function ownersOf({ apiKey, ip }: Pick<FastifyRequest, "apiKey" | "ip">): string[] {
  const owners = apiKey ? [`key ${apiKey.id}`] : [];
  if (!isLoopback(ip)) owners.push(`network ${clientNetwork(ip)}`);
  return owners;
}

const NO_ROOM_RETRY_SECONDS = 1;

export function noRoom(): Problem {
  return new Problem("unavailable", "too many large requests and answers at once", {
    headers: { "Retry-After": String(NO_ROOM_RETRY_SECONDS) },
  });
}

/** An answer that is no larger than this always has room. */
const SMALL_ANSWER_CHARACTERS = 1024 * 1024;

export interface AnswerShare {
  readonly owners: readonly string[];
  /** Whether the answer may be refused for want of room; what reports a change that was made may not. */
  readonly mayRefuse: boolean;
}

/** Takes the room of a large answer until it is out, or its client is gone. */
export function takeRoom(
  room: Room,
  characters: number,
  response: ServerResponse,
  { owners, mayRefuse }: AnswerShare,
): void {
  // Who is gone already does not go again: nothing would give the room back.
  if (characters <= SMALL_ANSWER_CHARACTERS || response.destroyed) return;
  const share = room.share(owners);
  if (!share.take(characters) && mayRefuse) throw noRoom();
  response.once("close", () => share.release());
}
