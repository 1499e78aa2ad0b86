import { statSync } from "node:fs";
import type { Thread } from "../../../lib/thread.ts";
import { isBusy, isStorageFailure } from "../../files/store-failure.ts";
import { dayFile, type Layout } from "../../files/layout.ts";
import { LOG_BYTES_KEPT } from "./day-file.ts";
import type { CheckpointerApi } from "./checkpointer-thread.ts";
import type { WriterApi } from "./journal-writer-thread.ts";

// Checkpoints of the day files' write-ahead logs: when they run, and in which thread.

const ROWS_PER_CHECKPOINT = 10_000;
const ROWS_LEFT_TO_WRITER = 3000;
const ROWS_LOGGED_MAX = 200_000;
const CHECKPOINTER_PASSES_MAX = 8;

export class WriteAheadLogs {
  readonly #layout: Layout;
  readonly #writer: Thread<WriterApi>;
  readonly #newCheckpointer: () => Thread<CheckpointerApi>;
  /** Started when the first log is large enough. */
  #checkpointer: Thread<CheckpointerApi> | undefined;
  readonly #onFailure: () => void;
  /** Rows added to each day's log since its last checkpoint. */
  readonly #loggedRows = new Map<number, number>();
  #work: Promise<void> | undefined;

  constructor(
    layout: Layout,
    writer: Thread<WriterApi>,
    newCheckpointer: () => Thread<CheckpointerApi>,
    onFailure: () => void,
  ) {
    this.#layout = layout;
    this.#writer = writer;
    this.#newCheckpointer = newCheckpointer;
    this.#onFailure = onFailure;
  }

  grew(day: number, rows: number): void {
    this.#loggedRows.set(day, (this.#loggedRows.get(day) ?? 0) + rows);
  }

  dropDay(day: number): void {
    this.#loggedRows.delete(day);
  }

  checkpointIfDue(): void {
    if (this.#work) return;
    const due = [...this.#loggedRows].filter(([, rows]) => rows >= ROWS_PER_CHECKPOINT).map(([day]) => day);
    if (due.length > 0) this.#begin(() => this.#checkpoint(due));
  }

  /** For the start: a killed process may have left logs as large as its last burst. */
  truncateLarge(days: readonly number[]): void {
    const large = days.filter((day) => {
      const log = statSync(`${dayFile(this.#layout, day)}-wal`, { throwIfNoEntry: false });
      return (log?.size ?? 0) > LOG_BYTES_KEPT;
    });
    if (large.length === 0) return;
    this.#begin(async () => {
      for (const day of large) await this.#callCheckpointer("truncate", day);
    });
  }

  async close(): Promise<void> {
    await this.#work;
    await this.#checkpointer?.end();
  }

  async #callCheckpointer(method: keyof CheckpointerApi, day: number): Promise<void> {
    this.#checkpointer ??= this.#newCheckpointer();
    await this.#checkpointer.call(method, day);
  }

  #begin(work: () => Promise<void>): void {
    this.#work = work()
      .catch((error: unknown) => {
        // The log only grows until the next turn; appends report a full disk.
        this.#onFailure();
        if (!isStorageFailure(error) && !isBusy(error)) throw error;
      })
      .finally(() => {
        this.#work = undefined;
      });
  }

  /**
   * The checkpointer moves the log into the file while the writer appends, until it has nearly caught up. The writer's own
   * checkpoint is then short and restarts the log. If the checkpointer cannot keep up, the writer's checkpoint does the rest.
   */
  async #checkpoint(days: readonly number[]): Promise<void> {
    for (const day of days) {
      let moved = 0;
      let left = this.#loggedRows.get(day) ?? 0;
      for (let pass = 0; pass < CHECKPOINTER_PASSES_MAX && left > ROWS_LEFT_TO_WRITER; pass++) {
        this.#loggedRows.set(day, 0);
        await this.#callCheckpointer("checkpoint", day);
        moved += left;
        left = this.#loggedRows.get(day) ?? 0;
      }
      if (left <= ROWS_LEFT_TO_WRITER || moved > ROWS_LOGGED_MAX) {
        this.#loggedRows.set(day, 0);
        await this.#writer.call("checkpoint", day);
      }
    }
  }
}
