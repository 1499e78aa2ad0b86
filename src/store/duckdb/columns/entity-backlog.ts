import { setImmediate as nextTurn } from "node:timers/promises";
import { parseExact } from "../../../lib/exact-json.ts";
import type { Event } from "../../../model/event.ts";
import { onFile } from "../../files/store-failure.ts";
import type { DayReaders } from "../../sqlite/journal/day-file.ts";
import { EntityCounter, type CountedEntities } from "./entity-counter.ts";
import type { EntityBacklog } from "./entity-table.ts";
import type { Memtables } from "./memtables.ts";

// Counts the entities of events that were stored before entities were counted, in the background: from the journal, the newest day
// first.

/** Events that are read at a time; queries get a turn in between. */
const EVENTS_AT_ONCE = 500;
/** Events that are counted before the progress is stored. */
const EVENTS_PER_STEP = 50_000;
const CHARACTERS_AT_ONCE_MAX = 4 * 1024 * 1024;

export class EntityBacklogReader {
  readonly #journal: DayReaders;
  readonly #memtables: Memtables;
  #counting: Promise<void> | undefined;
  #isStopped = false;

  constructor(journal: DayReaders, memtables: Memtables) {
    this.#journal = journal;
    this.#memtables = memtables;
  }

  /** Continues where it stopped; does nothing while it is running. Rejects with a failure; the next call retries. */
  continue(): Promise<void> {
    this.#counting ??= this.#count().finally(() => (this.#counting = undefined));
    return this.#counting;
  }

  /** Resolves when nothing is running, and nothing will be. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#counting?.catch(() => undefined);
  }

  async #count(): Promise<void> {
    for (;;) {
      const { backlog } = this.#memtables.entities;
      if (!backlog || this.#isStopped) return;
      const step = await this.#readStep(backlog);
      if (this.#isStopped) return;
      await this.#memtables.addCounted(backlog, step.counted, step.after);
    }
  }

  async #readStep({ day, after, last }: EntityBacklog): Promise<{ counted: CountedEntities; after: number }> {
    const counter = new EntityCounter();
    let at = after;
    for (let events = 0; events < EVENTS_PER_STEP && at < last && !this.#isStopped; events += EVENTS_AT_ONCE) {
      at = onFile(this.#journal.pathOf(day), () => this.#readSome(counter, { day, after: at, last }));
      await nextTurn();
    }
    return { counted: counter.take(), after: at };
  }

  /** Returns the sequence number of the last event that was read. */
  #readSome(counter: EntityCounter, { day, after, last }: EntityBacklog): number {
    const select = this.#journal
      .get(day)
      ?.sql(`SELECT seq, ts, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${EVENTS_AT_ONCE}`);
    select?.setReturnArrays(true);
    let [at, events, characters] = [after, 0, 0];
    for (const row of select?.iterate(after, last) ?? []) {
      const [seq, ts, body] = row as unknown as [number, number, string];
      counter.add((parseExact(body) as Event).raw, ts);
      at = seq;
      events++;
      characters += body.length;
      if (characters >= CHARACTERS_AT_ONCE_MAX) return at;
    }
    return events < EVENTS_AT_ONCE ? last : at;
  }
}
