import type { DuckDBConnection, DuckDBDataChunk, DuckDBResult } from "@duckdb/node-api";
import { formatTime } from "../../../lib/time.ts";
import type { Scalar } from "../../../model/condition.ts";
import type { TimeRange } from "../../../model/query.ts";
import { QuestionRefused, StoreUnavailable, type Projection } from "../../store.ts";
import { tookTooLong } from "./engine.ts";
import type { Patterns } from "./patterns.ts";
import { Parameters } from "./sql.ts";
import { hotField } from "./table.ts";
import { codedNames, conditionSql, isCoded, restValuesSql } from "./where.ts";

// A few fields of many events, in the order of their times, handed over in parts. The engine sorts, on disk where it has
// to; what is handed over lies in flat arrays, which cost little on their way to another thread.

const PART_ROWS = 10_000;
const PROJECTIONS_MAX = 4;

export interface ProjectedRows {
  readonly seqs: Float64Array;
  readonly times: Float64Array;
  readonly passed: Int32Array;
  /** For each field, for each row: its value, its different values, or null where it has none. */
  readonly values: readonly (readonly ProjectedValue[])[];
}

type ProjectedValue = Scalar | readonly Scalar[] | null;

/** Where a field's values come from: columns of the engine's answer, and how a row of them is read. */
interface Source {
  readonly sql: readonly string[];
  read(cells: readonly unknown[]): ProjectedValue;
}

/** The rows that a projection is made of, held where they are until they are released. */
export interface ProjectionScope {
  readonly connection: DuckDBConnection;
  /** As SQL. */
  readonly rows: string;
  readonly patterns: Patterns;
  readonly platform: string;
  /** Well-known fields that some row holds in an unexpected form. */
  readonly oddBits: number;
  release(): void;
}

interface Open {
  scope: ProjectionScope | undefined;
  sources: readonly Source[];
  result: DuckDBResult | undefined;
  isEnded: boolean;
  isLate: boolean;
  timer: NodeJS.Timeout;
  /** What is being done for it: only then may its scope be released. */
  work: Promise<unknown>;
}

/** Projections that are under way. Each may be ended at any time, also while something is being done for it. */
export class Projections {
  readonly #open = new Map<number, Open>();
  readonly #msMax: number;
  readonly #scopeOf: (range: TimeRange) => Promise<ProjectionScope>;

  constructor(msMax: number, scopeOf: (range: TimeRange) => Promise<ProjectionScope>) {
    this.#msMax = msMax;
    this.#scopeOf = scopeOf;
  }

  async begin(number: number, question: Projection & TimeRange): Promise<void> {
    if (this.#open.size >= PROJECTIONS_MAX) throw new StoreUnavailable("queue_full", "too many projections at once");
    const timer = setTimeout(() => {
      open.isLate = true;
      open.scope?.connection.interrupt();
    }, this.#msMax);
    const idle = Promise.resolve();
    const open: Open = {
      scope: undefined,
      sources: [],
      result: undefined,
      isEnded: false,
      isLate: false,
      timer,
      work: idle,
    };
    this.#open.set(number, open);
    await this.#work(open, async () => {
      open.scope = await this.#scopeOf(question);
      if (open.isEnded) return;
      const { sources, sql, values } = await plan(question, open.scope);
      open.sources = sources;
      open.result = await open.scope.connection.stream(sql, values);
    });
  }

  /** The next rows; none at the end. */
  async rows(number: number): Promise<ProjectedRows> {
    const open = this.#open.get(number);
    const chunks: DuckDBDataChunk[] = [];
    let rows = 0;
    while (rows < PART_ROWS) {
      const chunk = await this.#nextChunk(open);
      if (!chunk || chunk.rowCount === 0) break;
      chunks.push(chunk);
      rows += chunk.rowCount;
    }
    return toRows(chunks, rows, open?.sources ?? []);
  }

  async #nextChunk(open: Open | undefined): Promise<DuckDBDataChunk | null> {
    const result = open?.result;
    return result && !open.isEnded ? this.#work(open, () => result.fetchChunk()) : null;
  }

  async end(number: number): Promise<void> {
    const open = this.#open.get(number);
    if (!open || open.isEnded) return;
    open.isEnded = true;
    open.scope?.connection.interrupt();
    await open.work;
    clearTimeout(open.timer);
    this.#open.delete(number);
    open.scope?.release();
  }

  async #work<T>(open: Open, piece: () => Promise<T>): Promise<T> {
    const done = piece();
    open.work = done.catch(() => undefined);
    try {
      const value = await done;
      if (open.isLate) throw tookTooLong(this.#msMax);
      return value;
    } catch (error) {
      throw open.isLate ? tookTooLong(this.#msMax) : error;
    }
  }
}

async function plan(question: Projection, scope: ProjectionScope) {
  const { condition, tests: others = [] } = question;
  const parameters = new Parameters(await scope.patterns.refusedOf([condition, ...others], scope.connection));
  const sources = question.fields.map((field) => sourceOf(field, scope, parameters));
  const tests = others.map(
    (test, i) => `CASE WHEN ${conditionSql(test, scope.platform, parameters)} THEN ${2 ** i} ELSE 0 END`,
  );
  const selected = [
    "CAST(seq AS DOUBLE)",
    "CAST(ts AS DOUBLE)",
    `CAST(${tests.length === 0 ? "0" : tests.join(" + ")} AS INTEGER)`,
    ...sources.flatMap(({ sql }) => sql),
  ];
  const where = conditionSql(condition, scope.platform, parameters);
  return {
    sources,
    ...parameters.settle(`SELECT ${selected.join(", ")} FROM ${scope.rows} WHERE ${where} ORDER BY ts, seq`),
  };
}

function toRows(chunks: readonly DuckDBDataChunk[], count: number, sources: readonly Source[]): ProjectedRows {
  const seqs = new Float64Array(count);
  const times = new Float64Array(count);
  const passed = new Int32Array(count);
  const values: ProjectedValue[][] = sources.map(() => []);
  let at = 0;
  for (const chunk of chunks) {
    const { rowCount } = chunk;
    const columns = Array.from({ length: chunk.columnCount }, (_, i) => chunk.getColumnValues(i));
    for (let row = 0; row < rowCount; row++) {
      seqs[at] = columns[0]![row] as number;
      times[at] = columns[1]![row] as number;
      passed[at] = columns[2]![row] as number;
      at++;
    }
    let first = 3;
    for (const [i, { sql, read }] of sources.entries()) {
      const own = columns.slice(first, first + sql.length);
      first += sql.length;
      const into = values[i]!;
      for (let row = 0; row < rowCount; row++) into.push(read(own.map((column) => column[row])));
    }
  }
  return { seqs, times, passed, values };
}

function sourceOf(field: string, { platform, oddBits }: ProjectionScope, parameters: Parameters): Source {
  if (field === "id") throw new QuestionRefused("query", "every id is different");
  if (field === "raw" || field === "enrichment") return { sql: [], read: () => null };
  if (field === "type") return { sql: ["type"], read: ([type]) => type as string };
  if (field === "timestamp") return { sql: ["CAST(ts AS DOUBLE)"], read: ([ts]) => formatTime(ts as number) };
  if (isCoded(field)) {
    const names = codedNames(field, platform);
    return { sql: [field], read: ([code]) => names[code as number]! };
  }
  const hot = hotField(field);
  if (!hot) return { sql: [restValuesSql(field, parameters)], read: ([json]) => fromJson(json as string | null) };
  if ((oddBits & hot.bit) === 0) return { sql: [hot.column], read: ([own]) => own as Scalar | null };
  return {
    sql: [hot.column, `CASE WHEN (odd & ${hot.bit}) <> 0 THEN ${restValuesSql(field, parameters)} END`],
    read: ([own, json]) => (own as Scalar | null) ?? fromJson(json as string | null),
  };
}

/** A value, or the different ones of a list; an object in a list is null there, and no value. */
function fromJson(json: string | null): ProjectedValue {
  if (json === null) return null;
  const value = JSON.parse(json) as Scalar | (Scalar | null)[];
  return Array.isArray(value) ? [...new Set(value.filter((item) => item !== null))] : value;
}
