import { open, rm } from "node:fs/promises";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { diskFull } from "../files/store-failure.ts";
import { probeFile } from "../files/layout.ts";

// A store that cannot write must not report itself ready: it could not take events.

/** How long a refused write counts without a probe: as long as its sender has to wait before the next attempt. */
const REFUSAL_MS = 5000;
/** More than a small commit group needs. */
const PROBE_BYTES = 1024 * 1024;

interface RefusedWrite {
  readonly error: StoreUnavailable;
  readonly atMs: number;
  /** The id of the last event stored before it. */
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

  /** Notes a write that the disk refused. Other errors are ignored. */
  noteRefusal(error: unknown): void {
    if (!(error instanceof StoreUnavailable) || error.reason !== "disk_full") return;
    this.#refusal = { error, atMs: this.#now(), lastId: this.#lastId() };
  }

  /** Rejects after a refused write, until a later write succeeds or, without one, a probe file can be written. */
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
    const path = probeFile(this.#dataDir);
    try {
      const file = await open(path, "w", 0o600);
      try {
        await file.writeFile(Buffer.alloc(PROBE_BYTES));
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      throw diskFull(error);
    } finally {
      await rm(path, { force: true });
    }
  }
}
