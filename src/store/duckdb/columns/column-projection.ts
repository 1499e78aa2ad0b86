import type { DuckDBConnection, DuckDBDataChunk, DuckDBResult } from "@duckdb/node-api";
import type { TimeRange } from "../../../model/query.ts";
import type { Projection } from "../../ports/projection.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import type { RunSql } from "./aggregate.ts";
import { boundedWhere } from "./bounded-where.ts";
import { interruptOn } from "../interrupt.ts";
import { queryRows, queryTimedOut, explainFailure } from "./column-engine.ts";
import type { UnsupportedPatterns } from "./unsupported-patterns.ts";
import { VECTOR_ROWS } from "../vectors/vector-layout.ts";
import { doublesOf, eachText, integersOf } from "../vectors/vector-memory.ts";
import { fieldColumn, type FieldColumn, type NumberedColumn } from "./projection-field.ts";
import { isTerse } from "./sql-size.ts";
import { Parameters, TRUE } from "./sql.ts";

// Projections: a few fields of many events in order of time, returned in batches. Rows consist of numbers only; each distinct
// text crosses between threads once, since a string for every row would cost more than everything else. DuckDB reads one
// time slice after the other, so that it never has much to sort, and prepares the next slice while the rows of the current
// one are fetched.

const BATCH_ROWS = 50_000;
/** Characters of new values in a batch, counted as NEW_VALUE_CHARACTERS says: the chunk that exceeds it ends the batch. */
const BATCH_CHARACTERS = 4_000_000;
const PROJECTIONS_MAX = 4;
const SLICES_MAX = 1000;
/** Slices with a smaller share of matching rows double the length of the next ones, up to a factor. */
const SPARSE_SHARE = 1 / 16;
const LENGTHENING_MAX = 16;

export interface ProjectedRows {
  readonly seqs: Float64Array;
  readonly times: Float64Array;
  readonly passed: Int32Array;
  readonly columns: readonly NumberedColumn[];
}

/** The rows of a projection, which stay in column until they are released. */
export interface ProjectionScope {
  /** One for the slice that is being read, one for the next, alternating. */
  readonly connections: readonly [DuckDBConnection, DuckDBConnection];
  /** SQL of the rows; the parameter SEGMENTS has the value of `segments`. */
  readonly rows: string;
  readonly segments: number;
  readonly patterns: UnsupportedPatterns;
  readonly platform: string;
  /** The `odd` bits of all rows. */
  readonly irregularBits: number;
  /** Returns the name of a table that does not exist yet; `release` drops it. */
  newTable(): string;
  release(): Promise<void>;
}

export interface ProjectionLimits {
  /** A projection that takes longer is stopped. */
  readonly msMax: number;
  /** Rows in a slice, matching or not, for evenly distributed events. */
  readonly sliceRows: number;
}

interface TimeSlice {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The time that has yet to be read, and the length of the slices. */
interface ProjectionSlices {
  atMs: number;
  readonly toMs: number;
  lengthMs: number;
  readonly lengthMsMax: number;
  readonly sparseRows: number;
}

interface ProjectionPlan {
  readonly fields: readonly FieldColumn[];
  readonly slices: ProjectionSlices;
  sqlOf(slice: TimeSlice): { sql: string; values: (string | number | boolean)[] };
}

interface OpenProjection {
  scope: ProjectionScope | undefined;
  plan: ProjectionPlan | undefined;
  result: DuckDBResult | undefined;
  nextResult: Promise<DuckDBResult> | undefined;
  slicesStarted: number;
  /** Rows of the slice that is being read. */
  rowsRead: number;
  isEnded: boolean;
  isTimedOut: boolean;
  /** Interrupts the connections when the projection ends or times out. */
  readonly stop: AbortController;
  /** Stops the interrupts. */
  stopInterrupts: (() => void) | undefined;
  readonly timer: NodeJS.Timeout;
  /** Work in flight; the scope is released after it. */
  work: Promise<unknown>;
}

/** The open projections. Each may be ended at any time, also while work for it is in flight. */
export class Projections {
  readonly #open = new Map<number, OpenProjection>();
  readonly #limits: ProjectionLimits;
  readonly #openScope: (range: TimeRange) => Promise<ProjectionScope>;

  constructor(limits: ProjectionLimits, openScope: (range: TimeRange) => Promise<ProjectionScope>) {
    this.#limits = limits;
    this.#openScope = openScope;
  }

  get size(): number {
    return this.#open.size;
  }

  async begin(number: number, projection: Projection & TimeRange): Promise<void> {
    if (this.#open.size >= PROJECTIONS_MAX) throw new StoreUnavailable("queue_full", "too many projections are open");
    const timer = setTimeout(() => {
      open.isTimedOut = true;
      open.stop.abort(queryTimedOut(this.#limits.msMax));
    }, this.#limits.msMax);
    const open: OpenProjection = {
      scope: undefined,
      plan: undefined,
      result: undefined,
      nextResult: undefined,
      slicesStarted: 0,
      rowsRead: 0,
      isEnded: false,
      isTimedOut: false,
      stop: new AbortController(),
      stopInterrupts: undefined,
      timer,
      work: Promise.resolve(),
    };
    this.#open.set(number, open);
    await this.#track(open, async () => {
      open.scope = await this.#openScope(projection);
      open.stopInterrupts = interruptOn(open.stop.signal, ...open.scope.connections);
      if (!open.isEnded) open.plan = await planOf(projection, open.scope, this.#limits, open.stop.signal);
    });
    startNextSlice(open);
  }

  /** The next rows, of one slice; none at the end. */
  async rows(number: number): Promise<ProjectedRows> {
    const open = this.#open.get(number);
    if (!open) return new ProjectedBatch([]).rows();
    const first = await this.#firstChunk(open);
    const batch = new ProjectedBatch(open.plan?.fields ?? []);
    for (let chunk = first; chunk; chunk = batch.isFull ? undefined : await this.#nextChunk(open)) batch.add(chunk);
    return batch.rows();
  }

  /** The first chunk of this slice or, at its end, of the next one that has rows. */
  async #firstChunk(open: OpenProjection): Promise<DuckDBDataChunk | undefined> {
    for (;;) {
      const chunk = await this.#nextChunk(open);
      const { nextResult } = open;
      if (chunk || !nextResult || open.isEnded) return chunk;
      lengthenSlices(open);
      open.result = await this.#track(open, () => nextResult);
      startNextSlice(open);
    }
  }

  async #nextChunk(open: OpenProjection): Promise<DuckDBDataChunk | undefined> {
    if (!open.result || open.isEnded) return undefined;
    const chunk = await this.#track(open, () => open.result!.fetchChunk());
    if (chunk && chunk.rowCount > 0) {
      open.rowsRead += chunk.rowCount;
      return chunk;
    }
    open.result = undefined;
    return undefined;
  }

  async end(number: number): Promise<void> {
    const open = this.#open.get(number);
    if (!open || open.isEnded) return;
    open.isEnded = true;
    open.stop.abort(new StoreUnavailable("closed", "the projection was ended"));
    await open.work;
    await open.nextResult?.catch(() => undefined);
    clearTimeout(open.timer);
    open.stopInterrupts?.();
    this.#open.delete(number);
    await open.scope?.release();
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((number) => this.end(number)));
  }

  async #track<T>(open: OpenProjection, work: () => Promise<T>): Promise<T> {
    const done = work();
    open.work = done.catch(() => undefined);
    try {
      const value = await done;
      if (open.isTimedOut) throw queryTimedOut(this.#limits.msMax);
      return value;
    } catch (error) {
      throw open.isTimedOut ? queryTimedOut(this.#limits.msMax) : explainFailure(error, this.#open.size === 1);
    }
  }
}

/** Starts the next slice. The connection's previous slice has been read to its end. */
function startNextSlice(open: OpenProjection): void {
  open.nextResult = undefined;
  const { plan } = open;
  if (!plan || open.isEnded || plan.slices.atMs >= plan.slices.toMs) return;
  const { slices } = plan;
  const fromMs = slices.atMs;
  const toMs = Math.min(fromMs + slices.lengthMs, slices.toMs);
  slices.atMs = toMs;
  const { sql, values } = plan.sqlOf({ fromMs, toMs });
  open.nextResult = open.scope!.connections[open.slicesStarted++ % 2]!.stream(sql, values);
  // `#firstChunk` awaits it and reports a failure, unless the projection ends before.
  open.nextResult.catch(() => undefined);
}

/** Lengthens slices that have few matches: each slice has a fixed cost. */
function lengthenSlices(open: OpenProjection): void {
  const { slices } = open.plan!;
  if (open.slicesStarted > 1 && open.rowsRead < slices.sparseRows)
    slices.lengthMs = Math.min(slices.lengthMs * 2, slices.lengthMsMax);
  open.rowsRead = 0;
}

async function planOf(
  projection: Projection,
  scope: ProjectionScope,
  limits: ProjectionLimits,
  signal: AbortSignal,
): Promise<ProjectionPlan> {
  const { rows, segments, platform, irregularBits, patterns } = scope;
  const [connection] = scope.connections;
  const { condition, tests = [] } = projection;
  const conditions = [condition, ...tests];
  const unsupportedPatterns = await patterns.among(conditions, connection);
  const parameters = new Parameters({ unsupportedPatterns, irregularBits, isTerse: isTerse(conditions) }, segments);
  const fields = projection.fields.map((field) => fieldColumn(field, platform, parameters));
  const run: RunSql = (text, values) => {
    signal.throwIfAborted();
    const settled = values.finalise(text);
    return queryRows(connection, settled.sql, settled.values);
  };
  const mostNs = async (nsSql: string) => {
    const [[most]] = (await run(`SELECT max(${nsSql}) FROM ${rows}`, parameters)) as [[number | null]];
    return Number(most);
  };
  const bounded = { platform, parameters, rows, run, mostNs, newTable: () => scope.newTable() };
  const passed: string[] = [];
  for (const [i, test] of tests.entries()) {
    passed.push(`CASE WHEN ${await boundedWhere(test, TRUE, bounded)} THEN ${2 ** i} ELSE 0 END`);
  }
  const where = await boundedWhere(condition, TRUE, bounded);
  const selected = [
    "CAST(seq AS DOUBLE)",
    "CAST(ts AS DOUBLE)",
    `CAST(${passed.length === 0 ? "0" : passed.join(" + ")} AS INTEGER)`,
    ...fields.flatMap(({ select: sql }) => sql),
  ].join(", ");
  const sqlOf = ({ fromMs, toMs }: TimeSlice) =>
    parameters.finalise(
      `SELECT ${selected} FROM ${rows} WHERE ts >= ${fromMs} AND ts < ${toMs} AND ${where} ORDER BY ts, seq`,
    );
  return { fields, slices: await slicesOf(scope, limits), sqlOf };
}

async function slicesOf(
  { connections, rows, segments }: ProjectionScope,
  { sliceRows }: ProjectionLimits,
): Promise<ProjectionSlices> {
  const found = await connections[0].runAndReadAll(`SELECT count(*), min(ts), max(ts) FROM ${rows}`, [segments]);
  const [count, first, last] = found.getRows()[0]!.map(Number) as [number, number, number];
  const slices = Math.max(1, Math.min(Math.ceil(count / sliceRows), SLICES_MAX));
  const lengthMs = Math.ceil((last - first + 1) / slices);
  return {
    atMs: first,
    toMs: count === 0 ? first : last + 1,
    lengthMs,
    lengthMsMax: lengthMs * LENGTHENING_MAX,
    sparseRows: sliceRows * SPARSE_SHARE,
  };
}

class ProjectedBatch {
  readonly #seqs = new Float64Array(BATCH_ROWS + VECTOR_ROWS);
  readonly #times = new Float64Array(BATCH_ROWS + VECTOR_ROWS);
  readonly #passed = new Int32Array(BATCH_ROWS + VECTOR_ROWS);
  readonly #fields: readonly { readonly field: FieldColumn; readonly into: NumberedColumn }[];
  #count = 0;
  #characters = 0;

  constructor(fields: readonly FieldColumn[]) {
    this.#fields = fields.map((field) => ({ field, into: field.start(BATCH_ROWS + VECTOR_ROWS) }));
  }

  get isFull(): boolean {
    return this.#count >= BATCH_ROWS || this.#characters >= BATCH_CHARACTERS;
  }

  add(chunk: DuckDBDataChunk): void {
    const at = this.#count;
    this.#seqs.set(doublesOf(chunk, 0), at);
    this.#times.set(doublesOf(chunk, 1), at);
    this.#passed.set(integersOf(chunk, 2), at);
    let column = 3;
    for (const { field, into } of this.#fields) {
      const from = column;
      this.#characters += field.read(into, at, {
        doubles: (nth) => doublesOf(chunk, from + nth),
        integers: (nth) => integersOf(chunk, from + nth),
        texts: (nth, visit) => eachText(chunk, from + nth, visit),
      });
      column += field.select.length;
    }
    this.#count += chunk.rowCount;
  }

  /** Copies: a view would cross between threads with its whole buffer. */
  rows(): ProjectedRows {
    const count = this.#count;
    return {
      seqs: this.#seqs.slice(0, count),
      times: this.#times.slice(0, count),
      passed: this.#passed.slice(0, count),
      columns: this.#fields.map(({ into: { numbers, newValues } }) => ({
        numbers: numbers.slice(0, count),
        newValues,
      })),
    };
  }
}
