import { CLASSES, SEVERITIES, SOURCE_KINDS, sourceKind, type Event, type JsonObject } from "../../../model/event.ts";
import type { Scalar } from "../../../model/condition.ts";
import { OBJECT, PATH_CHARACTERS_MAX, visitFields, type FieldValue } from "../../../model/field.ts";
import {
  INLINE_TEXT_BYTES_MAX,
  TEXT_LENGTH_BYTES,
  TEXT_SLOT_BYTES,
  validityBytes,
  VECTOR_ROWS,
} from "../vectors/vector-layout.ts";
import { EntityCounter, type CountedEntities } from "./entity-counter.ts";
import { encodeValue } from "./large-integer.ts";
import {
  COLUMNS,
  HOT_FIELDS,
  hotField,
  OVERSIZED,
  LARGE_INTEGERS,
  extraKey,
  UNNAMED_PATH,
  type ColumnType,
  type ExtraType,
} from "./column-table.ts";

// Events as rows in the layout of DuckDB's vectors: the values of a column side by side, short texts in place. A few buffers
// cross between threads instead of thirty cells for each event, and the garbage collector has nothing to copy.

/** Rows with this much text should be taken, even if there are few: some events are as large as a hundred others. */
const TEXT_CHARACTERS_MAX = 16 * 1024 * 1024;
/** DuckDB holds 2,048 rows in memory at a time: longer text stays in the journal alone. */
export const EXTRA_CHARACTERS_MAX = 16 * 1024;
const HOT_CHARACTERS_MAX = 4 * 1024;
const PATHS_MAX = 10_000;
export const COLUMN_BYTES: Readonly<Record<ColumnType, number>> = {
  BIGINT: 8,
  UTINYINT: 1,
  INTEGER: 4,
  DOUBLE: 8,
  VARCHAR: TEXT_SLOT_BYTES,
};

/** At most VECTOR_ROWS rows. */
export interface PackedRows {
  readonly length: number;
  /** For each of COLUMNS, the values of all rows, then the validity mask. */
  readonly fixed: ArrayBuffer;
  /** Texts that are too long for their slots, as triples: column, row, end in `texts`. */
  readonly longTexts: Uint32Array;
  readonly texts: Uint8Array<ArrayBuffer>;
  /** The earliest and the latest time of an event. */
  readonly earliestMs: number;
  readonly latestMs: number;
  /** The `odd` bits of all rows. */
  readonly irregularBits: number;
  /** Rows of oversized events, which have no `rest`. */
  readonly oversized: number;
  readonly entities: CountedEntities;
}

type ColumnFields = Pick<Event, "type" | "source" | "severity" | "class" | "raw" | "enrichment">;

const [SEQ, TS, SOURCE, SEVERITY, CLASS, TYPE, FIRST_HOT] = [0, 1, 2, 3, 4, 5, 6] as const;
const IRREGULAR = FIRST_HOT + HOT_FIELDS.length;
const EXTRA = IRREGULAR + 1;
const HIGH = 2 ** 32;
const encoder = new TextEncoder();

interface PackedColumn {
  /** The whole column, for all types. */
  readonly bytes: Uint8Array;
  readonly doubles: Float64Array;
  readonly integers: Int32Array;
  readonly valid: Uint8Array;
}

/** Packs rows one by one. */
export class RowPacker {
  readonly #columns: readonly PackedColumn[] = COLUMNS.map(({ type }) => {
    const bytes = new Uint8Array(VECTOR_ROWS * Math.max(COLUMN_BYTES[type], 8));
    return {
      bytes,
      doubles: new Float64Array(bytes.buffer),
      integers: new Int32Array(bytes.buffer),
      valid: new Uint8Array(VECTOR_ROWS / 8),
    };
  });
  readonly #entities = new EntityCounter();
  readonly #longPositions: number[] = [];
  readonly #texts: string[] = [];
  #length = 0;
  #earliestMs = Infinity;
  #latestMs = 0;
  #irregularBits = 0;
  #oversized = 0;
  #characters = 0;
  /** `odd`, `rest` and values with a path that is too long, of the row that is being added. */
  #irregular = 0;
  #extra = "";
  #unnamed: Scalar[] = [];

  get length(): number {
    return this.#length;
  }

  /** True when the rows should be taken. */
  get isFull(): boolean {
    return this.#length === VECTOR_ROWS || this.#characters >= TEXT_CHARACTERS_MAX;
  }

  add(seq: number, timestampMs: number, event: ColumnFields): void {
    if (this.#length === VECTOR_ROWS) throw new Error("the packer is full: take its rows first");
    const before = this.#texts.length;
    this.#setBigint(SEQ, seq);
    this.#setBigint(TS, timestampMs);
    this.#setByte(SOURCE, SOURCE_KINDS.indexOf(sourceKind(event.source)));
    this.#setByte(SEVERITY, SEVERITIES.indexOf(event.severity));
    this.#setByte(CLASS, CLASSES.indexOf(event.class));
    this.#irregular = 0;
    this.#extra = "";
    if (!this.#addPlainObject(RAW, event.raw) || !this.#addPlainObject(ENRICHMENT, event.enrichment)) {
      this.#undoRow(before);
      this.#addAnyShape(event);
    }
    this.#setText(TYPE, event.type);
    if (this.#unnamed.length > 0) this.#addExtra(extraKeyOf(UNNAMED, "m"), this.#listText(this.#unnamed.splice(0)));
    if ((this.#irregular & OVERSIZED) !== 0) this.#oversized++;
    else if (this.#extra !== "") this.#setText(EXTRA, `${this.#extra}}`);
    this.#setInteger(IRREGULAR, this.#irregular);
    this.#irregularBits |= this.#irregular;
    this.#entities.add(event.raw, timestampMs);
    this.#earliestMs = Math.min(this.#earliestMs, timestampMs);
    this.#latestMs = Math.max(this.#latestMs, timestampMs);
    this.#length++;
  }

  /** Takes all rows and starts over. */
  take(): PackedRows {
    const length = this.#length;
    const validity = validityBytes(length);
    const bytes = COLUMNS.reduce((sum, { type }) => sum + COLUMN_BYTES[type] * length + validity, 0);
    const fixed = new Uint8Array(bytes);
    let at = 0;
    for (const [i, { bytes: data, valid }] of this.#columns.entries()) {
      const width = COLUMN_BYTES[COLUMNS[i]!.type];
      fixed.set(data.subarray(0, width * length), at);
      at += width * length;
      fixed.set(valid.subarray(0, validity), at);
      at += validity;
      valid.fill(0, 0, validity);
    }
    const rows: PackedRows = {
      length,
      fixed: fixed.buffer,
      ...this.#takeLongTexts(),
      earliestMs: this.#earliestMs,
      latestMs: this.#latestMs,
      irregularBits: this.#irregularBits,
      oversized: this.#oversized,
      entities: this.#entities.take(),
    };
    this.#length = 0;
    this.#characters = 0;
    this.#oversized = 0;
    this.#earliestMs = Infinity;
    this.#latestMs = 0;
    this.#irregularBits = 0;
    return rows;
  }

  #takeLongTexts(): Pick<PackedRows, "longTexts" | "texts"> {
    const all = this.#texts.join("");
    const texts = encoder.encode(all);
    const longTexts = new Uint32Array(this.#texts.length * 3);
    const isAscii = texts.length === all.length;
    let end = 0;
    for (const [i, text] of this.#texts.entries()) {
      longTexts[i * 3] = this.#longPositions[i * 2]!;
      longTexts[i * 3 + 1] = this.#longPositions[i * 2 + 1]!;
      longTexts[i * 3 + 2] = end += isAscii ? text.length : Buffer.byteLength(text);
    }
    this.#texts.length = 0;
    this.#longPositions.length = 0;
    return { longTexts, texts };
  }

  /** The fast path. False if several values may share a path: then `#addAnyShape` adds the event. */
  #addPlainObject(within: PathInfo, object: JsonObject): boolean {
    const keys = Object.keys(object);
    if (keys.length === 0) return true;
    const values = Object.values(object);
    for (let i = 0; i < keys.length; i++) {
      const value = values[i]!;
      if (value === null) continue;
      // Of an oversized event only well-known fields are needed; those of raw are not nested.
      if ((this.#irregular & OVERSIZED) !== 0 && within !== ENRICHMENT && !hotField(`${within.path}.${keys[i]!}`))
        continue;
      const field = childPath(within, keys[i]!);
      if (field.isDotted) return false;
      if (typeof value !== "object") this.#addScalar(field, value);
      else if (Array.isArray(value)) {
        if (value.some((element) => typeof element === "object" && element !== null)) return false;
        this.#addList(field, value as readonly (Scalar | null)[]);
      } else {
        this.#addObjectMarker(field);
        if (!this.#addPlainObject(field, value)) return false;
      }
    }
    return true;
  }

  #addScalar(field: PathInfo, value: Scalar): void {
    if (field === UNNAMED) return void this.#unnamed.push(value);
    if (typeof value === "bigint") return this.#addLargeInteger(field, value);
    const type = typeof value as "string" | "number" | "boolean";
    const isShort = type !== "string" || (value as string).length <= HOT_CHARACTERS_MAX;
    if (field.hot >= 0 && type === HOT_FIELDS[field.hot]!.type && isShort) {
      if (type === "string") this.#setText(FIRST_HOT + field.hot, value as string);
      else this.#setDouble(FIRST_HOT + field.hot, value as number);
      return;
    }
    this.#markIrregular(field);
    this.#addExtra(extraKeyOf(field, type[0] as ExtraType), type === "string" ? JSON.stringify(value) : String(value));
  }

  #addList(field: PathInfo, values: readonly (Scalar | null)[]): void {
    const present = values.includes(null) ? values.filter((value) => value !== null) : (values as readonly Scalar[]);
    if (present.length === 1) this.#addScalar(field, present[0]!);
    else if (present.length > 1) this.#addValues(field, present);
  }

  /** Adds several values of one path; objects among them are null. */
  #addValues(field: PathInfo, values: readonly (Scalar | null)[]): void {
    if (field === UNNAMED) return values.forEach((value) => value !== null && this.#unnamed.push(value));
    this.#markIrregular(field);
    this.#addExtra(extraKeyOf(field, "m"), this.#listText(values));
  }

  #addLargeInteger(field: PathInfo, value: bigint): void {
    this.#markIrregular(field);
    this.#irregular |= LARGE_INTEGERS;
    this.#addExtra(extraKeyOf(field, "i"), JSON.stringify(encodeValue(value)));
  }

  #listText(values: readonly (Scalar | null)[]): string {
    if (!values.some((value) => typeof value === "bigint")) return JSON.stringify(values);
    this.#irregular |= LARGE_INTEGERS;
    return JSON.stringify(values.map(encodeValue));
  }

  /** Records that the path leads to an object. */
  #addObjectMarker(field: PathInfo): void {
    if (field === UNNAMED) return;
    this.#markIrregular(field);
    this.#addExtra(extraKeyOf(field, "o"), "1");
  }

  #markIrregular({ hot }: PathInfo): void {
    if (hot >= 0) this.#irregular |= HOT_FIELDS[hot]!.bit;
  }

  #addExtra(key: string, text: string): void {
    if (this.#extra.length + key.length + text.length > EXTRA_CHARACTERS_MAX) this.#irregular |= OVERSIZED;
    else this.#extra += (this.#extra === "" ? "{" : ",") + key + text;
  }

  /** The slow path, for events of any shape. */
  #addAnyShape(event: ColumnFields): void {
    const values = new Map<string, FieldValue | FieldValue[]>();
    visitFields(event, (path, value) => {
      const known = values.get(path);
      if (known === undefined) values.set(path, value);
      else if (Array.isArray(known)) known.push(value);
      else values.set(path, [known, value]);
    });
    for (const [path, value] of values) {
      if (path === RAW.path || path === ENRICHMENT.path) continue;
      const field = path.length > PATH_CHARACTERS_MAX ? UNNAMED : pathInfo(path, false);
      if (value === OBJECT) this.#addObjectMarker(field);
      else if (!Array.isArray(value)) this.#addScalar(field, value);
      else
        this.#addValues(
          field,
          value.map((item) => (item === OBJECT ? null : item)),
        );
    }
  }

  /** Removes all field values of the current row. */
  #undoRow(texts: number): void {
    const keep = ~(1 << (this.#length & 7));
    for (let column = FIRST_HOT; column < IRREGULAR; column++) this.#columns[column]!.valid[this.#length >> 3]! &= keep;
    this.#texts.length = texts;
    this.#longPositions.length = texts * 2;
    this.#irregular = 0;
    this.#extra = "";
    this.#unnamed.length = 0;
  }

  #setBigint(column: number, value: number): void {
    const { integers } = this.#valid(column);
    const high = Math.floor(value / HIGH);
    integers[this.#length * 2] = value - high * HIGH;
    integers[this.#length * 2 + 1] = high;
  }

  #setByte(column: number, value: number): void {
    this.#valid(column).bytes[this.#length] = value;
  }

  #setInteger(column: number, value: number): void {
    this.#valid(column).integers[this.#length] = value;
  }

  #setDouble(column: number, value: number): void {
    this.#valid(column).doubles[this.#length] = value;
  }

  #setText(column: number, text: string): void {
    const { bytes } = this.#valid(column);
    if (text.length <= INLINE_TEXT_BYTES_MAX && writeInline(text, bytes, this.#length * TEXT_SLOT_BYTES)) return;
    this.#longPositions.push(column, this.#length);
    this.#texts.push(text);
    this.#characters += text.length;
  }

  #valid(column: number): PackedColumn {
    const found = this.#columns[column]!;
    found.valid[this.#length >> 3]! |= 1 << (this.#length & 7);
    return found;
  }
}

/** Returns false if the text is not ASCII. */
function writeInline(text: string, data: Uint8Array, at: number): boolean {
  for (let i = 0; i < INLINE_TEXT_BYTES_MAX; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0;
    if (code > 127) return false;
    data[at + TEXT_LENGTH_BYTES + i] = code;
  }
  data[at] = text.length;
  data[at + 1] = data[at + 2] = data[at + 3] = 0;
  return true;
}

/** Facts about a path, computed once for each path that recurs. */
interface PathInfo {
  readonly path: string;
  /** Its index in HOT_FIELDS, or -1. */
  readonly hot: number;
  /** A key with a dot may lead to the same path as a nested one. */
  readonly isDotted: boolean;
  /** The JSON keys in `rest` by type, computed when they are first needed. */
  readonly keys: Partial<Record<ExtraType, string>>;
  readonly children: Map<string, PathInfo>;
}

function extraKeyOf({ keys, path }: PathInfo, type: ExtraType): string {
  return (keys[type] ??= extraKey(type, path));
}

function pathInfo(path: string, isDotted: boolean): PathInfo {
  const hot = hotField(path);
  return { path, hot: hot ? HOT_FIELDS.indexOf(hot) : -1, isDotted, keys: {}, children: new Map() };
}

const RAW = pathInfo("raw", false);
const ENRICHMENT = pathInfo("enrichment", false);
/** All fields whose path is too long for a query. Only a search in every field finds their values. */
const UNNAMED = pathInfo(UNNAMED_PATH, false);
let pathsKnown = 0;

function childPath(within: PathInfo, key: string): PathInfo {
  if (within === UNNAMED || within.path.length + key.length >= PATH_CHARACTERS_MAX) return UNNAMED;
  let field = within.children.get(key);
  if (!field) {
    field = pathInfo(`${within.path}.${key}`, key.includes("."));
    if (pathsKnown >= PATHS_MAX) return field;
    pathsKnown++;
    within.children.set(key, field);
  }
  return field;
}
