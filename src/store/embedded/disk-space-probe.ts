import { open, rm } from "node:fs/promises";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { noRoom } from "../files/store-failure.ts";
import { roomFile } from "../files/layout.ts";

// Whether there is room to write: a store that only reads is not one to send events to.

/** How long a refused write counts by itself: as long as its sender is told to wait. */
const REFUSAL_MS = 5000;
/** More than a group of a few events takes. */
const PROBE_BYTES = 1024 * 1024;

interface RefusedWrite {
  readonly error: StoreUnavailable;
  readonly atMs: number;
  /** The id of the last event that had been stored. */
  readonly lastId: string | null;
}

export class DiskSpaceProbe {
  readonly #dataDir: string;
  readonly #now: () => number;
  readonly #lastId: () => string | null;
  #refusal: RefusedWrite | undefined;

  constructor(dataDir: string, lastId: () => string | null, now: () => number) {
    this.#dataDir = dataDir;
    this.#lastId = lastId;
    this.#now = now;
  }

  /** Events that were not stored. */
  noteRefusal(error: unknown): void {
    if (!(error instanceof StoreUnavailable) || error.reason !== "disk_full") return;
    this.#refusal = { error, atMs: this.#now(), lastId: this.#lastId() };
  }

  /** Rejects while the last write was refused, and for want of writers as long as a file finds no room. */
  async check(): Promise<void> {
    const refusal = this.#refusal;
    if (!refusal) return;
    if (this.#lastId() === refusal.lastId) {
      if (Math.abs(this.#now() - refusal.atMs) < REFUSAL_MS) throw refusal.error;
      await this.#probe();
    }
    if (this.#refusal === refusal) this.#refusal = undefined;
  }

  async #probe(): Promise<void> {
    const path = roomFile(this.#dataDir);
    try {
      const file = await open(path, "w", 0o600);
      try {
        await file.writeFile(Buffer.alloc(PROBE_BYTES));
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      throw noRoom(error);
    } finally {
      await rm(path, { force: true });
    }
  }
}
