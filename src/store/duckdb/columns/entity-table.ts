import type { DuckDBConnection } from "@duckdb/node-api";
import { queryRows } from "./column-engine.ts";
import { appendEntities, type CountedEntities } from "./entity-counter.ts";
import { ENTITY_COLUMN_LIST, ENTITY_COLUMNS } from "./entity-schema.ts";

// The entities of the rows on disk, counted by day: a few thousand rows a day stand for millions of events, so that a search
// while someone types reads little.

const STAGED = "memtables.counted";
/** The `lot` of rows that belong to no single segment. */
const MERGED = 0;

/** Rows of a day that are not merged yet, in addition to as many as it has merged ones. */
const UNMERGED_ROWS_MAX = 10_000;

/** Events of a day that have yet to be counted, by their sequence numbers. */
export interface EntityBacklog {
  readonly day: number;
  readonly after: number;
  readonly last: number;
}

export async function openEntityTable(writer: DuckDBConnection): Promise<EntityTable> {
  const table = new EntityTable(writer);
  await table.open();
  return table;
}

/** Not serialised: the caller makes one change at a time, each in a transaction of its own, and then notes it. */
export class EntityTable {
  readonly #writer: DuckDBConnection;
  /** For each day, all rows and those of the last merge. */
  readonly #rows = new Map<number, number>();
  readonly #merged = new Map<number, number>();
  readonly #backlog = new Map<number, EntityBacklog>();
  /** Merges since the start. */
  merges = 0;

  constructor(writer: DuckDBConnection) {
    this.#writer = writer;
  }

  async open(): Promise<void> {
    for (const [day, rows] of await queryRows(this.#writer, "SELECT day, count(*) FROM entities GROUP BY day"))
      this.#rows.set(Number(day), Number(rows));
    for (const [day, after, last] of await queryRows(this.#writer, "SELECT day, after, last FROM entity_backlog"))
      this.#backlog.set(Number(day), { day: Number(day), after: Number(after), last: Number(last) });
  }

  /** Days with entities, and the number of rows of each. */
  get rowsByDay(): ReadonlyMap<number, number> {
    return this.#rows;
  }

  /** The newest day with events that have yet to be counted. */
  get backlog(): EntityBacklog | undefined {
    return [...this.#backlog.values()].sort((a, b) => b.day - a.day)[0];
  }

  backlogOf(day: number): EntityBacklog | undefined {
    return this.#backlog.get(day);
  }

  hasBacklog(fromMs: number, toMs: number): boolean {
    return [...this.#backlog.keys()].some((day) => day >= fromMs && day < toMs);
  }

  /** Adds the entities in a table that belong to this segment. */
  async add(table: string, segment: number): Promise<void> {
    await this.#writer.run(
      `INSERT INTO entities SELECT day, kind, value, folded, sum(events)::BIGINT, min(first_ts), max(last_ts), ${segment}
       FROM ${table} GROUP BY day, kind, value, folded`,
    );
  }

  /** Stages entities of the backlog, before the transaction: DuckDB writes to one database in each. */
  async stage({ day }: EntityBacklog, counted: CountedEntities): Promise<void> {
    await this.#writer.run(`CREATE OR REPLACE TABLE ${STAGED}(${ENTITY_COLUMN_LIST})`);
    const appender = await this.#writer.createAppender("counted", "main", "memtables");
    appendEntities(appender, day, counted);
    appender.closeSync();
  }

  /** Adds the staged entities, and the position up to which the events of the backlog are counted now. */
  async addStaged({ day, last }: EntityBacklog, after: number): Promise<void> {
    await this.add(STAGED, MERGED);
    await this.#writer.run(`DELETE FROM entity_backlog WHERE day = ${day}`);
    if (after < last) await this.#writer.run(`INSERT INTO entity_backlog VALUES (${day}, ${after}, ${last})`);
  }

  noteCounted({ day, last }: EntityBacklog, after: number): void {
    if (after < last) this.#backlog.set(day, { day, after, last });
    else this.#backlog.delete(day);
  }

  /** Notes new rows of these days. Returns the days that are worth merging. */
  async noteAdded(days: readonly number[]): Promise<number[]> {
    if (days.length === 0) return [];
    const counts = `SELECT day, count(*) FROM entities WHERE day IN (${days.join(", ")}) GROUP BY day`;
    const due: number[] = [];
    for (const [key, value] of await queryRows(this.#writer, counts)) {
      const [day, rows] = [Number(key), Number(value)];
      // The first rows of a day come from one segment, where each entity has one row.
      if (!this.#rows.has(day)) this.#merged.set(day, rows);
      this.#rows.set(day, rows);
      if (rows > 2 * (this.#merged.get(day) ?? 0) + UNMERGED_ROWS_MAX) due.push(day);
    }
    return due;
  }

  /** Merges the rows of each entity of a day. */
  async merge(day: number): Promise<void> {
    await this.#writer.run(
      `CREATE OR REPLACE TEMP TABLE merged_entities AS
       SELECT day, kind, value, folded, sum(events)::BIGINT AS events, min(first_ts) AS first_ts,
         max(last_ts) AS last_ts FROM entities WHERE day = ${day} GROUP BY day, kind, value, folded`,
    );
    await this.#writer.run(`DELETE FROM entities WHERE day = ${day}`);
    await this.#writer.run(`INSERT INTO entities SELECT ${ENTITY_COLUMNS}, ${MERGED} FROM merged_entities`);
    await this.#writer.run("DROP TABLE merged_entities");
  }

  async noteMerged(day: number): Promise<void> {
    this.merges++;
    await this.noteAdded([day]);
    this.#merged.set(day, this.#rows.get(day) ?? 0);
  }

  async remove(day: number): Promise<void> {
    await this.#writer.run(`DELETE FROM entities WHERE day = ${day}`);
    await this.#writer.run(`DELETE FROM entity_backlog WHERE day = ${day}`);
    this.#rows.delete(day);
    this.#merged.delete(day);
    this.#backlog.delete(day);
  }
}

/** A day has lost its rows above a sequence number: its entities are counted again. */
export async function recountDay(connection: DuckDBConnection, day: number, last: number): Promise<void> {
  await connection.run(`DELETE FROM entities WHERE day = ${day}`);
  await connection.run(`DELETE FROM entity_backlog WHERE day = ${day}`);
  if (last > 0) await connection.run(`INSERT INTO entity_backlog VALUES (${day}, 0, ${last})`);
}
