import type { ServerResponse } from "node:http";
import { Problem } from "./problems.ts";

// Many large requests or answers at once must not fill the memory.

/** Room for the bodies of all requests that are under way, or for all answers. */
export class Room {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The share of one request. */
  share(): Share {
    let taken = 0;
    return {
      take: (bytes) => {
        if (this.#bytes + bytes > this.#bytesMax) return false;
        this.#bytes += bytes;
        taken += bytes;
        return true;
      },
      release: () => {
        this.#bytes -= taken;
        taken = 0;
      },
    };
  }
}

export interface Share {
  /** False when there is no room. */
  take(bytes: number): boolean;
  /** Once the request is answered. */
  release(): void;
}

const NO_ROOM_RETRY_SECONDS = 1;

export function noRoom(): Problem {
  return new Problem("unavailable", "too many large requests and answers at once", {
    headers: { "Retry-After": String(NO_ROOM_RETRY_SECONDS) },
  });
}

/** An answer that is no larger than this always has room. */
const SMALL_ANSWER_CHARACTERS = 1024 * 1024;

/** Takes the room of a large answer until it is out, or its client is gone. */
export function takeRoom(room: Room, characters: number, response: ServerResponse, mayRefuse: boolean): void {
  // Who is gone already does not go again: nothing would give the room back.
  if (characters <= SMALL_ANSWER_CHARACTERS || response.destroyed) return;
  const share = room.share();
  if (!share.take(characters) && mayRefuse) throw noRoom();
  response.once("close", () => share.release());
}
