import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { DAY_MS, formatTime } from "../../lib/time.ts";
import type { MissingDay } from "../ports/store.ts";
import type { DayEntry, StateDatabase } from "./state-database.ts";

// What each day is known to have held: beside the files, so that one that was removed, emptied or damaged is missed. A count
// is written after its rows are stored, so it never says more than there was; it may be a few seconds behind.

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
      help: "Rows that were stored once and are missing, by what they are",
      labelNames: ["kind"],
      registers: [registry],
      collect() {
        for (const kind of ["events", "flows"] as const) this.set({ kind }, sum(kind));
      },
    });
    this.#timer = setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  /** At the start: what each day holds now, as its file says; undefined where the file is there and was not asked yet. */
  settle(kind: DayKind, found: ReadonlyMap<number, number | undefined>): void {
    for (const entry of [...this.#days.values()].filter((entry) => entry.kind === kind)) {
      const isThere = found.has(entry.day);
      // Retention wrote down what it was about to do; a file that is still there was not removed.
      if (entry.removedAt !== null && !isThere) continue;
      const rows = isThere ? (found.get(entry.day) ?? entry.rows) : 0;
      this.#compare(kind, entry.day, rows);
    }
    for (const [day, rows = 0] of found) if (!this.#days.has(keyOf(kind, day))) this.grew(kind, day, rows);
    this.#tell(kind, this.missing(kind));
  }

  /** What the file of a day holds, now that it was asked. */
  found(kind: DayKind, day: number, rows: number): void {
    const known = this.#days.get(keyOf(kind, day));
    if (!known || rows >= known.rows) return this.grew(kind, day, rows);
    this.#compare(kind, day, rows);
    this.#tell(kind, this.missing(kind, day, day + 1));
  }

  /** Something else than this manifest shows that a day has held more than it does. */
  noteLoss(kind: DayKind, day: number, missing: number): void {
    const { rows = 0, missing: known = 0 } = this.#days.get(keyOf(kind, day)) ?? {};
    if (missing <= known) return;
    this.#write({ kind, day, rows, missing, removedAt: null });
    this.#tell(kind, this.missing(kind, day, day + 1));
  }

  /** So many rows are stored in the day now. The first time it is written at once, then every few seconds. */
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

  /** Whole days before this time are about to be removed on purpose: nobody will miss them. */
  removing(kind: DayKind, beforeMs: number): void {
    for (const entry of this.#days.values()) {
      if (entry.kind !== kind || entry.day + DAY_MS > beforeMs || entry.removedAt !== null) continue;
      this.#write({ ...entry, missing: 0, removedAt: this.#now() });
    }
  }

  /** Rows of whole days before this time, and of all. */
  rowsBefore(kind: DayKind, beforeMs: number): { rows: number; total: number } {
    const sums = { rows: 0, total: 0 };
    for (const { kind: its, day, rows, removedAt } of this.#days.values()) {
      if (its !== kind || removedAt !== null) continue;
      sums.total += rows;
      if (day + DAY_MS <= beforeMs) sums.rows += rows;
    }
    return sums;
  }

  /** Days of which rows are missing, oldest first. */
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
      this.#log.warn({ err: error }, "the counts of days could not be written; they are tried again");
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

  #tell(kind: DayKind, days: readonly MissingDay[]): void {
    if (days.length === 0) return;
    const rows = days.reduce((sum, day) => sum + day.rows, 0);
    const named = Object.fromEntries(days.map((day) => [formatTime(day.day).slice(0, 10), day.rows]));
    this.#log.error({ kind, rows, days: named }, MISSING);
  }
}

function keyOf(kind: DayKind, day: number): string {
  return `${kind} ${day}`;
}
