import type { DuckDBConnection } from "@duckdb/node-api";
import { queryRows } from "./column-engine.ts";
import { hotField, OVERSIZED } from "./column-table.ts";
import { extraTextSql } from "./field-text.ts";
import { Parameters } from "./sql.ts";

// Columns of `events` for fields that are aggregated and have none of their own, made in the background after the first such
// query. They hold the texts of field-text.ts. Null means that the text is not known, and a query computes it: of rows
// that are not filled yet, of very long values and oversized events, and of amended enrichment. A column is therefore never wrong,
// only incomplete.

/** Columns at a time. */
const FIELD_COLUMNS_MAX = 8;
/** A column makes room for another one if no query has used it for this long. */
const UNUSED_MS = 600_000;
/** A column with fewer rows to fill waits for more: computing their texts takes a query a few milliseconds. */
export const FIELD_ROWS_MIN = 20_000;
/** Rows that are filled in one transaction; a segment is not divided. */
const ROWS_PER_STEP = 40_000;
const TEXT_BYTES_MAX = 256;
/** A column with longer texts on average, or with more unknown ones, would cost more than it saves. */
const TEXT_BYTES_PER_ROW_MAX = 32;
const UNKNOWN_SHARE_MAX = 1 / 8;
/** Fields that were found unsuitable, until the next start. */
const UNSUITABLE_MAX = 1000;

type Transact = (work: () => Promise<void>) => Promise<void>;

interface FilledColumn {
  readonly name: string;
  readonly path: string;
  /** The last segment that is filled. */
  filled: number;
  /** Nothing was left to fill when it was last looked at. */
  isFilled: boolean;
  usedAt: number;
  /** It is dropped as soon as no query reads it. */
  isUnsuitable: boolean;
  /** Queries that may refer to it. */
  readers: number;
}

/** The columns that a query may use, which stay until it is released. */
export interface FieldColumnsInUse {
  /** The column of the field; if it has none, one is made. */
  columnOf(path: string): string | undefined;
  release(): void;
}

export async function openFieldColumns(writer: DuckDBConnection, rowsMin: number): Promise<FieldColumns> {
  const columns = new FieldColumns(writer, rowsMin);
  await columns.open();
  return columns;
}

/** Not serialised: the caller makes one change at a time, each in a transaction of its own. */
export class FieldColumns {
  readonly #writer: DuckDBConnection;
  readonly #rowsMin: number;
  readonly #columns = new Map<string, FilledColumn>();
  readonly #unsuitable = new Set<string>();
  #wanted: string | undefined;
  #numbered = 0;
  /** Called after a query that asked for a column that does not exist. */
  onWanted: () => void = () => undefined;

  constructor(writer: DuckDBConnection, rowsMin: number) {
    this.#writer = writer;
    this.#rowsMin = rowsMin;
  }

  async open(): Promise<void> {
    // Found unsuitable, and still read by a query when the service ended.
    const left = await queryRows(
      this.#writer,
      `SELECT column_name FROM duckdb_columns() WHERE table_name = 'events' AND regexp_full_match(column_name, 'field_[0-9]+')
         AND column_name NOT IN (SELECT name FROM field_columns)`,
    );
    for (const [name] of left) await this.#writer.run(`ALTER TABLE events DROP COLUMN ${name as string}`);
    const found = await queryRows(this.#writer, "SELECT name, path, filled FROM field_columns");
    for (const [name, path, filled] of found as [string, string, number][])
      this.#columns.set(path, {
        name,
        path,
        filled,
        usedAt: performance.now(),
        isFilled: false,
        isUnsuitable: false,
        readers: 0,
      });
    this.#numbered = Math.max(0, ...found.map(([name]) => Number(/\d+$/.exec(name as string)?.[0])));
  }

  /** Columns of which every segment is filled. */
  get filled(): number {
    return this.#columns
      .values()
      .filter(({ isFilled }) => isFilled)
      .toArray().length;
  }

  /** The columns whose texts an amendment may change: raw data never changes. */
  get amendable(): readonly string[] {
    return [...this.#columns.values()].filter(({ path }) => !path.startsWith("raw.")).map(({ name }) => name);
  }

  use(): FieldColumnsInUse {
    const columns = new Map([...this.#columns].filter(([, { isUnsuitable }]) => !isUnsuitable));
    for (const column of columns.values()) column.readers++;
    return {
      columnOf: (path) => {
        const column = columns.get(path);
        if (column) column.usedAt = performance.now();
        else this.#want(path);
        return column?.name;
      },
      release: () => {
        for (const column of columns.values()) column.readers--;
        // Not earlier: it would compete with the query that asked first.
        if (this.#wanted !== undefined) this.onWanted();
      },
    };
  }

  #want(path: string): void {
    if (hotField(path) || this.#columns.has(path) || this.#unsuitable.has(path)) return;
    this.#wanted = path;
  }

  /**
   * Makes or fills a column, one step of what there is to do with the segments up to this number. Returns the rows that it filled;
   * undefined when nothing is left to do.
   */
  async advance(segments: number, transact: Transact): Promise<number | undefined> {
    if (this.#wanted !== undefined) {
      const path = this.#wanted;
      this.#wanted = undefined;
      if (await this.#make(path, segments, transact)) return 0;
    }
    for (const column of this.#columns.values()) {
      if (column.isUnsuitable) {
        if (column.readers > 0) continue;
        await this.#drop(column, transact);
        return 0;
      }
      const upTo = await this.#nextStep(column.filled, segments);
      column.isFilled = upTo === undefined;
      if (upTo !== undefined) return this.#fill(column, upTo, transact);
    }
    return undefined;
  }

  async #make(path: string, segments: number, transact: Transact): Promise<boolean> {
    if (this.#columns.has(path) || (await this.#nextStep(0, segments)) === undefined) return false;
    if (this.#columns.size >= FIELD_COLUMNS_MAX) {
      const [oldest] = [...this.#columns.values()].sort((a, b) => a.usedAt - b.usedAt);
      if (oldest!.readers > 0 || performance.now() - oldest!.usedAt < UNUSED_MS) return false;
      await this.#drop(oldest!, transact);
    }
    const name = `field_${++this.#numbered}`;
    await transact(async () => {
      await this.#writer.run(`ALTER TABLE events ADD COLUMN ${name} VARCHAR`);
      await this.#writer.run("INSERT INTO field_columns VALUES ($1, $2, 0)", [name, path]);
    });
    this.#columns.set(path, {
      name,
      path,
      filled: 0,
      usedAt: performance.now(),
      isFilled: false,
      isUnsuitable: false,
      readers: 0,
    });
    return true;
  }

  /** The last segment of the next step; undefined if there are too few rows to fill. */
  async #nextStep(filled: number, segments: number): Promise<number | undefined> {
    if (filled >= segments) return undefined;
    const [[rows, upTo]] = (await queryRows(
      this.#writer,
      `SELECT sum(n), max(lot) FILTER (before < ${ROWS_PER_STEP}) FROM
         (SELECT lot, count(*) AS n, sum(count(*)) OVER (ORDER BY lot) - count(*) AS before FROM events
          WHERE lot > ${filled} AND lot <= ${segments} GROUP BY lot)`,
    )) as [[bigint | null, number | null]];
    return upTo === null || Number(rows) < this.#rowsMin ? undefined : upTo;
  }

  async #fill(column: FilledColumn, upTo: number, transact: Transact): Promise<number> {
    const { name, path, filled } = column;
    const scope = `lot > ${filled} AND lot <= ${upTo}`;
    const parameters = new Parameters();
    const { sql, values } = parameters.finalise(
      `UPDATE events SET ${name} = ${extraTextSql(path, parameters)} WHERE ${scope} AND (odd & ${OVERSIZED}) = 0`,
    );
    await transact(async () => {
      await this.#writer.run(sql, values);
      await this.#writer.run(`UPDATE events SET ${name} = NULL WHERE ${scope} AND strlen(${name}) > ${TEXT_BYTES_MAX}`);
      await this.#writer.run(`UPDATE field_columns SET filled = ${upTo} WHERE name = '${name}'`);
    });
    column.filled = upTo;
    const [[rows, bytes, known]] = (await queryRows(
      this.#writer,
      `SELECT count(*), coalesce(sum(strlen(${name})), 0)::BIGINT, count(${name}) FROM events WHERE ${scope}`,
    )) as [[bigint, bigint, bigint]];
    column.isUnsuitable =
      Number(bytes) > Number(rows) * TEXT_BYTES_PER_ROW_MAX || Number(rows - known) > Number(rows) * UNKNOWN_SHARE_MAX;
    if (column.isUnsuitable) {
      if (this.#unsuitable.size < UNSUITABLE_MAX) this.#unsuitable.add(path);
      await transact(async () => void (await this.#writer.run(`DELETE FROM field_columns WHERE name = '${name}'`)));
    }
    return Number(rows);
  }

  async #drop(column: FilledColumn, transact: Transact): Promise<void> {
    const { name, path } = column;
    // From now on no query starts to use it.
    this.#columns.delete(path);
    try {
      await transact(async () => {
        await this.#writer.run(`ALTER TABLE events DROP COLUMN ${name}`);
        await this.#writer.run(`DELETE FROM field_columns WHERE name = '${name}'`);
      });
    } catch (error) {
      this.#columns.set(path, column);
      throw error;
    }
  }
}
