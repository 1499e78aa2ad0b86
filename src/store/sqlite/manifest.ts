import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { DAY_MS, formatTime } from "../../lib/time.ts";
import type { MissingDay } from "../ports/store.ts";
import type { DayEntry, StateDatabase } from "./state-database.ts";

// Row counts per day, stored apart from the day files, so that the loss of a file is noticed. A count is written after its
// rows are stored: it may be a few seconds behind, but never too high.

export type DayKind = MissingDay["kind"];

const FLUSH_MS = 10_000;

const MISSING =
  "rows that were stored are missing: the file of their day was removed, emptied or damaged. Put it back from a backup, or " +
  "accept the loss with `tocsin storage accept-losses`; until then answers over these days are marked as incomplete";

export interface ManifestOptions {
  readonly state: StateDatabase;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

export class Manifest {
  readonly #state: StateDatabase;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #days = new Map<string, DayEntry>();
  readonly #changed = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor({ state, registry, log, now }: ManifestOptions) {
    this.#state = state;
    this.#log = log;
    this.#now = now;
    for (const entry of state.days()) this.#days.set(keyOf(entry.kind, entry.day), entry);
    const sum = (kind: DayKind) => this.missing(kind).reduce((all, { rows }) => all + rows, 0);
    new Gauge({
      name: "tocsin_store_missing_rows",
      help: "Stored rows that are missing, by kind",
      labelNames: ["kind"],
      registers: [registry],
      collect() {
        for (const kind of ["events", "flows"] as const) this.set({ kind }, sum(kind));
      },
    });
    this.#timer = setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  /** Compares the manifest with the row counts found at the start; undefined for a file that has not been read yet. */
  settle(kind: DayKind, found: ReadonlyMap<number, number | undefined>): void {
    for (const entry of [...this.#days.values()].filter((entry) => entry.kind === kind)) {
      const exists = found.has(entry.day);
      // Retention notes a removal before it happens; a file that still exists was not removed.
      if (entry.removedAt !== null && !exists) continue;
      const rows = exists ? (found.get(entry.day) ?? entry.rows) : 0;
      this.#compare(kind, entry.day, rows);
    }
    for (const [day, rows = 0] of found) if (!this.#days.has(keyOf(kind, day))) this.grew(kind, day, rows);
    this.#report(kind, this.missing(kind));
  }

  /** Compares the manifest with the row count read from a day's file. */
  found(kind: DayKind, day: number, rows: number): void {
    const known = this.#days.get(keyOf(kind, day));
    if (!known || rows >= known.rows) return this.grew(kind, day, rows);
    this.#compare(kind, day, rows);
    this.#report(kind, this.missing(kind, day, day + 1));
  }

  /** Notes a loss that another part of the store has found. */
  noteLoss(kind: DayKind, day: number, missing: number): void {
    const { rows = 0, missing: known = 0, removedAt = null } = this.#days.get(keyOf(kind, day)) ?? {};
    // The process ended between the removal of the day's file and that of the rest.
    if (removedAt !== null || missing <= known) return;
    this.#write({ kind, day, rows, missing, removedAt: null });
    this.#report(kind, this.missing(kind, day, day + 1));
  }

  /** Sets a day's row count. A new day is written at once, later counts every few seconds. */
  grew(kind: DayKind, day: number, rows: number): void {
    const key = keyOf(kind, day);
    const known = this.#days.get(key);
    const entry = { kind, day, rows, missing: known?.missing ?? 0, removedAt: null };
    if (!known || known.removedAt !== null) return this.#write(entry);
    this.#days.set(key, entry);
    this.#changed.add(key);
  }

  added(kind: DayKind, day: number, rows: number): void {
    const known = this.#days.get(keyOf(kind, day));
    this.grew(kind, day, (known?.removedAt === null ? known.rows : 0) + rows);
  }

  /** Notes that whole days before this time are about to be removed on purpose, so that they do not count as missing. */
  removing(kind: DayKind, beforeMs: number): void {
    for (const entry of this.#days.values()) {
      if (entry.kind !== kind || entry.day + DAY_MS > beforeMs || entry.removedAt !== null) continue;
      this.#write({ ...entry, missing: 0, removedAt: this.#now() });
    }
  }

  /** The number of rows in whole days before this time, and in all days. */
  rowsBefore(kind: DayKind, beforeMs: number): { rows: number; total: number } {
    const sums = { rows: 0, total: 0 };
    for (const { kind: entryKind, day, rows, removedAt } of this.#days.values()) {
      if (entryKind !== kind || removedAt !== null) continue;
      sums.total += rows;
      if (day + DAY_MS <= beforeMs) sums.rows += rows;
    }
    return sums;
  }

  /** Days with missing rows, oldest first. */
  missing(kind: DayKind, fromMs = -Infinity, toMs = Infinity): MissingDay[] {
    return [...this.#days.values()]
      .filter((entry) => entry.kind === kind && entry.removedAt === null && entry.missing > 0)
      .filter(({ day }) => day + DAY_MS > fromMs && day < toMs)
      .sort((a, b) => a.day - b.day)
      .map(({ day, missing }) => ({ kind, day, rows: missing }));
  }

  flush(): void {
    const entries = [...this.#changed].flatMap((key) => this.#days.get(key) ?? []);
    if (entries.length === 0) return;
    try {
      this.#state.saveDays(entries);
      this.#changed.clear();
    } catch (error) {
      this.#log.warn({ err: error }, "row counts of days could not be written; the next flush retries");
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.flush();
  }

  #compare(kind: DayKind, day: number, rows: number): void {
    const known = this.#days.get(keyOf(kind, day))!;
    const missing = Math.max(0, known.rows + known.missing - rows);
    if (rows !== known.rows || missing !== known.missing || known.removedAt !== null)
      this.#write({ kind, day, rows, missing, removedAt: null });
  }

  #write(entry: DayEntry): void {
    const key = keyOf(entry.kind, entry.day);
    this.#days.set(key, entry);
    this.#changed.add(key);
    this.flush();
  }

  #report(kind: DayKind, days: readonly MissingDay[]): void {
    if (days.length === 0) return;
    const rows = days.reduce((sum, day) => sum + day.rows, 0);
    const rowsByDay = Object.fromEntries(days.map((day) => [formatTime(day.day).slice(0, 10), day.rows]));
    this.#log.error({ kind, rows, days: rowsByDay }, MISSING);
  }
}

function keyOf(kind: DayKind, day: number): string {
  return `${kind} ${day}`;
}
