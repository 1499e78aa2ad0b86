import type { Thread } from "../../lib/thread.ts";
import type { CommittedGroup } from "./columns/follower.ts";
import type { ColumnsApi } from "./columns/worker.ts";

/** Rows that may be on their way to the columns; beyond that they are told only how far the journal goes, and read it. */
const ROWS_ON_THEIR_WAY_MAX = 20_000;
const TELL_MS = 20;

/**
 * Tells the columns what the journal has committed: now and then, and always before a question is put to them, so that
 * small commits do not cost a message each.
 */
export class CommitNews {
  readonly #columns: Thread<ColumnsApi>;
  #groups: CommittedGroup[] = [];
  #timer: NodeJS.Timeout | undefined;
  #onTheirWay = 0;

  constructor(columns: Thread<ColumnsApi>) {
    this.#columns = columns;
  }

  add(group: CommittedGroup): void {
    this.#onTheirWay += group.rows;
    this.#groups.push(this.#onTheirWay > ROWS_ON_THEIR_WAY_MAX ? { ...group, cells: undefined } : group);
    this.#timer ??= setTimeout(() => this.tell(), TELL_MS);
  }

  /** What it was told to change it must have been told of before. */
  amended(day: number, lastAmendment: number): void {
    this.tell();
    void this.#columns.call("amended", day, lastAmendment);
  }

  tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#groups.length === 0) return;
    const groups = this.#groups;
    this.#groups = [];
    const rows = groups.reduce((sum, group) => sum + group.rows, 0);
    void this.#columns.call("committed", groups).finally(() => {
      this.#onTheirWay -= rows;
    });
  }
}
