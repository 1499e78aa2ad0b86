import { statSync } from "node:fs";
import type { Thread } from "../../../lib/thread.ts";
import { isBusy, isStorageFailure } from "../../files/store-failure.ts";
import { dayFile, type Layout } from "../../files/layout.ts";
import { LOG_BYTES_KEPT } from "./day-file.ts";
import type { CheckpointerApi } from "./checkpointer-thread.ts";
import type { WriterApi } from "./journal-writer-thread.ts";

// The write-ahead logs of the day files: when they are moved into the files, and by whom.

const ROWS_PER_CHECKPOINT = 10_000;
const ROWS_LEFT_TO_WRITER = 3000;
const ROWS_LOGGED_MAX = 200_000;
const KEEPER_PASSES_MAX = 8;

export class WriteAheadLogs {
  readonly #layout: Layout;
  readonly #writer: Thread<WriterApi>;
  readonly #newKeeper: () => Thread<CheckpointerApi>;
  /** Started when a log is first large enough. */
  #keeper: Thread<CheckpointerApi> | undefined;
  readonly #onFailure: () => void;
  /** Rows that came into each day's log since it was last moved. */
  readonly #unchecked = new Map<number, number>();
  #work: Promise<void> | undefined;

  constructor(
    layout: Layout,
    writer: Thread<WriterApi>,
    newKeeper: () => Thread<CheckpointerApi>,
    onFailure: () => void,
  ) {
    this.#layout = layout;
    this.#writer = writer;
    this.#newKeeper = newKeeper;
    this.#onFailure = onFailure;
  }

  grew(day: number, rows: number): void {
    this.#unchecked.set(day, (this.#unchecked.get(day) ?? 0) + rows);
  }

  forget(day: number): void {
    this.#unchecked.delete(day);
  }

  checkpointIfDue(): void {
    if (this.#work) return;
    const due = [...this.#unchecked].filter(([, rows]) => rows >= ROWS_PER_CHECKPOINT).map(([day]) => day);
    if (due.length > 0) this.#begin(() => this.#checkpoint(due));
  }

  /** After a start: a process that was killed may have left logs as large as its last burst. */
  tidy(days: readonly number[]): void {
    const large = days.filter((day) => {
      const log = statSync(`${dayFile(this.#layout, day)}-wal`, { throwIfNoEntry: false });
      return (log?.size ?? 0) > LOG_BYTES_KEPT;
    });
    if (large.length === 0) return;
    this.#begin(async () => {
      for (const day of large) await this.#keep("truncate", day);
    });
  }

  async close(): Promise<void> {
    await this.#work;
    await this.#keeper?.end();
  }

  async #keep(what: keyof CheckpointerApi, day: number): Promise<void> {
    this.#keeper ??= this.#newKeeper();
    await this.#keeper.call(what, day);
  }

  #begin(work: () => Promise<void>): void {
    this.#work = work()
      .catch((error: unknown) => {
        // The log only grows until the next turn; a full disk shows itself where events are appended.
        this.#onFailure();
        if (!isStorageFailure(error) && !isBusy(error)) throw error;
      })
      .finally(() => {
        this.#work = undefined;
      });
  }

  /**
   * The keeper moves the log into the file beside the writer, until it has nearly caught up. The writer's own turn then is
   * short, and lets the log start anew; a log that runs away from the keeper is caught by that turn all the same.
   */
  async #checkpoint(days: readonly number[]): Promise<void> {
    for (const day of days) {
      let moved = 0;
      let left = this.#unchecked.get(day) ?? 0;
      for (let pass = 0; pass < KEEPER_PASSES_MAX && left > ROWS_LEFT_TO_WRITER; pass++) {
        this.#unchecked.set(day, 0);
        await this.#keep("checkpoint", day);
        moved += left;
        left = this.#unchecked.get(day) ?? 0;
      }
      if (left <= ROWS_LEFT_TO_WRITER || moved > ROWS_LOGGED_MAX) {
        this.#unchecked.set(day, 0);
        await this.#writer.call("checkpoint", day);
      }
    }
  }
}
