import type { DuckDBConnection, DuckDBDataChunk, DuckDBResult } from "@duckdb/node-api";
import type { TimeRange } from "../../../model/query.ts";
import { StoreUnavailable, type Projection } from "../../store.ts";
import type { RunSql } from "./aggregate.ts";
import { boundedWhere } from "./bounded.ts";
import { interruptOn } from "../under-way.ts";
import { rowsOf, tookTooLong, whyFailed } from "./engine.ts";
import type { Patterns } from "./patterns.ts";
import { doublesOf, eachText, integersOf } from "./chunk-reader.ts";
import { fieldColumn, type FieldColumn, type NumberedColumn } from "./projection-field.ts";
import { isTerse } from "./size.ts";
import { Parameters, TRUE } from "./sql.ts";

// A few fields of many events, in the order of their times, handed over in parts. Rows are numbers alone: each different
// text crosses over once, since a string for every row would cost more than all the rest. The engine looks at slices of
// time one after the other, so that it never has much to sort, and at the next one while the rows of this one are
// being taken.

const PART_ROWS = 50_000;
/** What the engine hands over at a time. */
const CHUNK_ROWS = 2048;
/** Of values that are told in one part, as TOLD_CHARACTERS has it: the part ends with the chunk that comes to more. */
const PART_CHARACTERS = 4_000_000;
const PROJECTIONS_MAX = 4;
const SLICES_MAX = 1000;
/** Slices with less than this share of matching rows make the next ones twice as long, up to so many times. */
const SPARSE = 1 / 16;
const LENGTHENING_MAX = 16;

export interface ProjectedRows {
  readonly seqs: Float64Array;
  readonly times: Float64Array;
  readonly passed: Int32Array;
  readonly columns: readonly NumberedColumn[];
}

/** The rows that a projection is made of, held where they are until they are released. */
export interface ProjectionScope {
  /** One for the slice that is being read, one for the next, in turns. */
  readonly connections: readonly [DuckDBConnection, DuckDBConnection];
  /** As SQL whose LOTS are these. */
  readonly rows: string;
  readonly lots: number;
  readonly patterns: Patterns;
  readonly platform: string;
  /** Well-known fields that some row holds in an unexpected form. */
  readonly oddBits: number;
  /** The name of a table that does not exist yet: it is gone once the scope is released. */
  newTable(): string;
  release(): Promise<void>;
}

export interface ProjectionLimits {
  /** A projection that takes longer is stopped. */
  readonly msMax: number;
  /** Rows that a slice has in it, matching or not, where events come evenly. */
  readonly sliceRows: number;
}

interface Slice {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What of the time is still to be looked at, and in what lengths. */
interface Slices {
  atMs: number;
  readonly toMs: number;
  lengthMs: number;
  readonly lengthMsMax: number;
  readonly sparseRows: number;
}

interface Plan {
  readonly fields: readonly FieldColumn[];
  readonly slices: Slices;
  sqlOf(slice: Slice): { sql: string; values: (string | number | boolean)[] };
}

interface Open {
  scope: ProjectionScope | undefined;
  plan: Plan | undefined;
  result: DuckDBResult | undefined;
  coming: Promise<DuckDBResult> | undefined;
  slicesBegun: number;
  /** Rows of the slice that is being read. */
  rowsRead: number;
  isEnded: boolean;
  isLate: boolean;
  /** For its connections: it was ended, or is late. */
  readonly stop: AbortController;
  /** Ends the interrupting. */
  leave: (() => void) | undefined;
  readonly timer: NodeJS.Timeout;
  /** What is being done for it: only then may its scope be released. */
  work: Promise<unknown>;
}

/** Projections that are under way. Each may be ended at any time, also while something is being done for it. */
export class Projections {
  readonly #open = new Map<number, Open>();
  readonly #limits: ProjectionLimits;
  readonly #scopeOf: (range: TimeRange) => Promise<ProjectionScope>;

  constructor(limits: ProjectionLimits, scopeOf: (range: TimeRange) => Promise<ProjectionScope>) {
    this.#limits = limits;
    this.#scopeOf = scopeOf;
  }

  get size(): number {
    return this.#open.size;
  }

  async begin(number: number, question: Projection & TimeRange): Promise<void> {
    if (this.#open.size >= PROJECTIONS_MAX) throw new StoreUnavailable("queue_full", "too many projections at once");
    const timer = setTimeout(() => {
      open.isLate = true;
      open.stop.abort(tookTooLong(this.#limits.msMax));
    }, this.#limits.msMax);
    const open: Open = {
      scope: undefined,
      plan: undefined,
      result: undefined,
      coming: undefined,
      slicesBegun: 0,
      rowsRead: 0,
      isEnded: false,
      isLate: false,
      stop: new AbortController(),
      leave: undefined,
      timer,
      work: Promise.resolve(),
    };
    this.#open.set(number, open);
    await this.#work(open, async () => {
      open.scope = await this.#scopeOf(question);
      open.leave = interruptOn(open.stop.signal, ...open.scope.connections);
      if (!open.isEnded) open.plan = await planOf(question, open.scope, this.#limits, open.stop.signal);
    });
    beginSlice(open);
  }

  /** The next rows, of one slice; none at the end. */
  async rows(number: number): Promise<ProjectedRows> {
    const open = this.#open.get(number);
    if (!open) return new Part([]).rows();
    const first = await this.#firstChunk(open);
    const part = new Part(open.plan?.fields ?? []);
    for (let chunk = first; chunk; chunk = part.isFull ? undefined : await this.#nextChunk(open)) part.add(chunk);
    return part.rows();
  }

  /** Of this slice or, at its end, of the next one that has any. */
  async #firstChunk(open: Open): Promise<DuckDBDataChunk | undefined> {
    for (;;) {
      const chunk = await this.#nextChunk(open);
      const { coming } = open;
      if (chunk || !coming || open.isEnded) return chunk;
      lengthenSlices(open);
      open.result = await this.#work(open, () => coming);
      beginSlice(open);
    }
  }

  async #nextChunk(open: Open): Promise<DuckDBDataChunk | undefined> {
    if (!open.result || open.isEnded) return undefined;
    const chunk = await this.#work(open, () => open.result!.fetchChunk());
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
    await open.coming?.catch(() => undefined);
    clearTimeout(open.timer);
    open.leave?.();
    this.#open.delete(number);
    await open.scope?.release();
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((number) => this.end(number)));
  }

  async #work<T>(open: Open, piece: () => Promise<T>): Promise<T> {
    const done = piece();
    open.work = done.catch(() => undefined);
    try {
      const value = await done;
      if (open.isLate) throw tookTooLong(this.#limits.msMax);
      return value;
    } catch (error) {
      throw open.isLate ? tookTooLong(this.#limits.msMax) : whyFailed(error, this.#open.size === 1);
    }
  }
}

/** Has the engine begin with the next slice. The connection's slice before that one has been read to its end. */
function beginSlice(open: Open): void {
  open.coming = undefined;
  const { plan } = open;
  if (!plan || open.isEnded || plan.slices.atMs >= plan.slices.toMs) return;
  const { slices } = plan;
  const fromMs = slices.atMs;
  const toMs = Math.min(fromMs + slices.lengthMs, slices.toMs);
  slices.atMs = toMs;
  const { sql, values } = plan.sqlOf({ fromMs, toMs });
  open.coming = open.scope!.connections[open.slicesBegun++ % 2]!.stream(sql, values);
  // Whoever waits for it hears of a failure; nobody may.
  open.coming.catch(() => undefined);
}

/** Each slice has its price, which few matches are not worth. */
function lengthenSlices(open: Open): void {
  const { slices } = open.plan!;
  if (open.slicesBegun > 1 && open.rowsRead < slices.sparseRows)
    slices.lengthMs = Math.min(slices.lengthMs * 2, slices.lengthMsMax);
  open.rowsRead = 0;
}

async function planOf(
  question: Projection,
  scope: ProjectionScope,
  limits: ProjectionLimits,
  signal: AbortSignal,
): Promise<Plan> {
  const { rows, lots, platform, oddBits, patterns } = scope;
  const [connection] = scope.connections;
  const { condition, tests = [] } = question;
  const conditions = [condition, ...tests];
  const foreignPatterns = await patterns.refusedOf(conditions, connection);
  const parameters = new Parameters({ foreignPatterns, oddBits, isTerse: isTerse(conditions) }, lots);
  const fields = question.fields.map((field) => fieldColumn(field, platform, parameters));
  const run: RunSql = (text, values) => {
    signal.throwIfAborted();
    const settled = values.settle(text);
    return rowsOf(connection, settled.sql, settled.values);
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
  const given = [
    "CAST(seq AS DOUBLE)",
    "CAST(ts AS DOUBLE)",
    `CAST(${passed.length === 0 ? "0" : passed.join(" + ")} AS INTEGER)`,
    ...fields.flatMap(({ given: sql }) => sql),
  ].join(", ");
  const sqlOf = ({ fromMs, toMs }: Slice) =>
    parameters.settle(
      `SELECT ${given} FROM ${rows} WHERE ts >= ${fromMs} AND ts < ${toMs} AND ${where} ORDER BY ts, seq`,
    );
  return { fields, slices: await slicesOf(scope, limits), sqlOf };
}

async function slicesOf(
  { connections, rows, lots }: ProjectionScope,
  { sliceRows }: ProjectionLimits,
): Promise<Slices> {
  const found = await connections[0].runAndReadAll(`SELECT count(*), min(ts), max(ts) FROM ${rows}`, [lots]);
  const [count, first, last] = found.getRows()[0]!.map(Number) as [number, number, number];
  const slices = Math.max(1, Math.min(Math.ceil(count / sliceRows), SLICES_MAX));
  const lengthMs = Math.ceil((last - first + 1) / slices);
  return {
    atMs: first,
    toMs: count === 0 ? first : last + 1,
    lengthMs,
    lengthMsMax: lengthMs * LENGTHENING_MAX,
    sparseRows: sliceRows * SPARSE,
  };
}

class Part {
  readonly #seqs = new Float64Array(PART_ROWS + CHUNK_ROWS);
  readonly #times = new Float64Array(PART_ROWS + CHUNK_ROWS);
  readonly #passed = new Int32Array(PART_ROWS + CHUNK_ROWS);
  readonly #fields: readonly { readonly field: FieldColumn; readonly into: NumberedColumn }[];
  #count = 0;
  #characters = 0;

  constructor(fields: readonly FieldColumn[]) {
    this.#fields = fields.map((field) => ({ field, into: field.start(PART_ROWS + CHUNK_ROWS) }));
  }

  get isFull(): boolean {
    return this.#count >= PART_ROWS || this.#characters >= PART_CHARACTERS;
  }

  add(chunk: DuckDBDataChunk): void {
    const at = this.#count;
    this.#seqs.set(doublesOf(chunk, 0), at);
    this.#times.set(doublesOf(chunk, 1), at);
    this.#passed.set(integersOf(chunk, 2), at);
    let place = 3;
    for (const { field, into } of this.#fields) {
      const from = place;
      this.#characters += field.read(into, at, {
        doubles: (column) => doublesOf(chunk, from + column),
        integers: (column) => integersOf(chunk, from + column),
        texts: (column, show) => eachText(chunk, from + column, show),
      });
      place += field.given.length;
    }
    this.#count += chunk.rowCount;
  }

  /** Copies, since a view would cross over with all that it is a view of. */
  rows(): ProjectedRows {
    const count = this.#count;
    return {
      seqs: this.#seqs.slice(0, count),
      times: this.#times.slice(0, count),
      passed: this.#passed.slice(0, count),
      columns: this.#fields.map(({ into: { numbers, told } }) => ({ numbers: numbers.slice(0, count), told })),
    };
  }
}
