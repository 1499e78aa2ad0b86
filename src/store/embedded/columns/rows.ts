import { CLASSES, SEVERITIES, SOURCE_KINDS, sourceKind, type Event, type JsonObject } from "../../../model/event.ts";
import type { Scalar } from "../../../model/condition.ts";
import { OBJECT, PATH_CHARACTERS_MAX, visitFields, type FieldValue } from "../../../model/field.ts";
import { encodeValue } from "./large-integer.ts";
import {
  COLUMNS,
  HOT_FIELDS,
  hotField,
  LARGE,
  LARGE_INTEGERS,
  restKey,
  UNNAMED_PATH,
  type ColumnType,
  type RestType,
} from "./table.ts";

// Events as rows, laid out as the engine has them: a column's values side by side, short texts in place. So a few buffers
// cross over between threads instead of thirty cells for each event, and the collector of garbage has nothing to copy.

/** A vector of the engine. */
export const CHUNK_ROWS = 2048;
/** Rows that have so much text are best taken however few they are: some events are as large as a hundred others. */
const TEXT_CHARACTERS_MAX = 16 * 1024 * 1024;
/** The engine holds two thousand rows in memory at a time: what is longer than this stays in the journal alone. */
export const REST_CHARACTERS_MAX = 16 * 1024;
const HOT_CHARACTERS_MAX = 4 * 1024;
const FIELDS_MAX = 10_000;
/** A text of up to this many bytes stands in its slot itself: its length, then its bytes. */
const INLINE_BYTES = 12;
const TEXT_SLOT_BYTES = 16;
export const WIDTHS: Readonly<Record<ColumnType, number>> = {
  BIGINT: 8,
  UTINYINT: 1,
  INTEGER: 4,
  DOUBLE: 8,
  VARCHAR: TEXT_SLOT_BYTES,
};

/** At most CHUNK_ROWS rows. */
export interface PackedRows {
  readonly length: number;
  /** For each of COLUMNS the values of all rows, then a bit for each row that says whether it has one. */
  readonly fixed: ArrayBuffer;
  /** Texts that are too long for their slots: column, row and end in `texts` of each. */
  readonly long: Uint32Array;
  readonly texts: Uint8Array<ArrayBuffer>;
  /** The times of the first and the last event. */
  readonly earliestMs: number;
  readonly latestMs: number;
  /** Well-known fields that some row holds in an unexpected form, as bits. */
  readonly oddBits: number;
  /** Rows whose `rest` is to be had from the journal. */
  readonly large: number;
}

/** How many bytes say which of so many rows have a value: the engine reads them in words. */
export function validityBytes(rows: number): number {
  return Math.ceil(rows / 64) * 8;
}

type Columned = Pick<Event, "type" | "source" | "severity" | "class" | "raw" | "enrichment">;

const [SEQ, TS, SOURCE, SEVERITY, CLASS, TYPE, FIRST_HOT] = [0, 1, 2, 3, 4, 5, 6] as const;
const ODD = FIRST_HOT + HOT_FIELDS.length;
const REST = ODD + 1;
const HIGH = 2 ** 32;
const encoder = new TextEncoder();

interface Column {
  /** All of it. */
  readonly bytes: Uint8Array;
  readonly doubles: Float64Array;
  readonly integers: Int32Array;
  readonly valid: Uint8Array;
}

/** Rows are added one by one and taken together. */
export class RowsPacker {
  readonly #columns: readonly Column[] = COLUMNS.map(({ type }) => {
    const bytes = new Uint8Array(CHUNK_ROWS * Math.max(WIDTHS[type], 8));
    return {
      bytes,
      doubles: new Float64Array(bytes.buffer),
      integers: new Int32Array(bytes.buffer),
      valid: new Uint8Array(CHUNK_ROWS / 8),
    };
  });
  readonly #long: number[] = [];
  readonly #texts: string[] = [];
  #length = 0;
  #earliestMs = Infinity;
  #latestMs = 0;
  #oddBits = 0;
  #large = 0;
  #characters = 0;
  /** Of the row that is being added. */
  #odd = 0;
  #rest = "";
  #nameless: Scalar[] = [];

  get length(): number {
    return this.#length;
  }

  /** They had better be taken now. */
  get isFull(): boolean {
    return this.#length === CHUNK_ROWS || this.#characters >= TEXT_CHARACTERS_MAX;
  }

  add(seq: number, timestampMs: number, event: Columned): void {
    if (this.#length === CHUNK_ROWS) throw new Error("the rows are to be taken first");
    const before = this.#texts.length;
    this.#setBigint(SEQ, seq);
    this.#setBigint(TS, timestampMs);
    this.#setByte(SOURCE, SOURCE_KINDS.indexOf(sourceKind(event.source)));
    this.#setByte(SEVERITY, SEVERITIES.indexOf(event.severity));
    this.#setByte(CLASS, CLASSES.indexOf(event.class));
    this.#odd = 0;
    this.#rest = "";
    if (!this.#addObject(RAW, event.raw) || !this.#addObject(ENRICHMENT, event.enrichment)) {
      this.#takeBack(before);
      this.#addFields(event);
    }
    this.#setText(TYPE, event.type);
    if (this.#nameless.length > 0) this.#addToRest(keyOf(UNNAMED, "m"), this.#listText(this.#nameless.splice(0)));
    if ((this.#odd & LARGE) !== 0) this.#large++;
    else if (this.#rest !== "") this.#setText(REST, `${this.#rest}}`);
    this.#setInteger(ODD, this.#odd);
    this.#oddBits |= this.#odd;
    this.#earliestMs = Math.min(this.#earliestMs, timestampMs);
    this.#latestMs = Math.max(this.#latestMs, timestampMs);
    this.#length++;
  }

  /** All rows so far; begins anew. */
  take(): PackedRows {
    const length = this.#length;
    const validity = validityBytes(length);
    const bytes = COLUMNS.reduce((sum, { type }) => sum + WIDTHS[type] * length + validity, 0);
    const fixed = new Uint8Array(bytes);
    let at = 0;
    for (const [i, { bytes: data, valid }] of this.#columns.entries()) {
      const width = WIDTHS[COLUMNS[i]!.type];
      fixed.set(data.subarray(0, width * length), at);
      at += width * length;
      fixed.set(valid.subarray(0, validity), at);
      at += validity;
      valid.fill(0, 0, validity);
    }
    const rows: PackedRows = {
      length,
      fixed: fixed.buffer,
      ...this.#takeLong(),
      earliestMs: this.#earliestMs,
      latestMs: this.#latestMs,
      oddBits: this.#oddBits,
      large: this.#large,
    };
    this.#length = 0;
    this.#characters = 0;
    this.#large = 0;
    this.#earliestMs = Infinity;
    this.#latestMs = 0;
    this.#oddBits = 0;
    return rows;
  }

  #takeLong(): Pick<PackedRows, "long" | "texts"> {
    const all = this.#texts.join("");
    const texts = encoder.encode(all);
    const long = new Uint32Array(this.#texts.length * 3);
    const isAscii = texts.length === all.length;
    let end = 0;
    for (const [i, text] of this.#texts.entries()) {
      long[i * 3] = this.#long[i * 2]!;
      long[i * 3 + 1] = this.#long[i * 2 + 1]!;
      long[i * 3 + 2] = end += isAscii ? text.length : Buffer.byteLength(text);
    }
    this.#texts.length = 0;
    this.#long.length = 0;
    return { long, texts };
  }

  /** False where several values may come together under one path, or have: then everything goes the long way. */
  #addObject(within: Field, object: JsonObject): boolean {
    const keys = Object.keys(object);
    if (keys.length === 0) return true;
    const values = Object.values(object);
    for (let i = 0; i < keys.length; i++) {
      const value = values[i]!;
      if (value === null) continue;
      // Nothing but columns of their own is left to fill, and none of those lies deeper in what was sent.
      if ((this.#odd & LARGE) !== 0 && within !== ENRICHMENT && !hotField(`${within.path}.${keys[i]!}`)) continue;
      const field = fieldIn(within, keys[i]!);
      if (field.isDotted) return false;
      if (typeof value !== "object") this.#addScalar(field, value);
      else if (Array.isArray(value)) {
        if (value.some((element) => typeof element === "object" && element !== null)) return false;
        this.#addSeveral(field, value as readonly (Scalar | null)[]);
      } else {
        this.#addWhole(field);
        if (!this.#addObject(field, value)) return false;
      }
    }
    return true;
  }

  #addScalar(field: Field, value: Scalar): void {
    if (field === UNNAMED) return void this.#nameless.push(value);
    if (typeof value === "bigint") return this.#addLargeInteger(field, value);
    const type = typeof value as "string" | "number" | "boolean";
    const isShort = type !== "string" || (value as string).length <= HOT_CHARACTERS_MAX;
    if (field.hot >= 0 && type === HOT_FIELDS[field.hot]!.type && isShort) {
      if (type === "string") this.#setText(FIRST_HOT + field.hot, value as string);
      else this.#setDouble(FIRST_HOT + field.hot, value as number);
      return;
    }
    this.#noteOdd(field);
    this.#addToRest(keyOf(field, type[0] as RestType), type === "string" ? JSON.stringify(value) : String(value));
  }

  #addSeveral(field: Field, values: readonly (Scalar | null)[]): void {
    const there = values.includes(null) ? values.filter((value) => value !== null) : (values as readonly Scalar[]);
    if (there.length === 1) this.#addScalar(field, there[0]!);
    else if (there.length > 1) this.#addMany(field, there);
  }

  /** The path leads to several values, objects among them as null. */
  #addMany(field: Field, values: readonly (Scalar | null)[]): void {
    if (field === UNNAMED) return values.forEach((value) => value !== null && this.#nameless.push(value));
    this.#noteOdd(field);
    this.#addToRest(keyOf(field, "m"), this.#listText(values));
  }

  #addLargeInteger(field: Field, value: bigint): void {
    this.#noteOdd(field);
    this.#odd |= LARGE_INTEGERS;
    this.#addToRest(keyOf(field, "i"), JSON.stringify(encodeValue(value)));
  }

  #listText(values: readonly (Scalar | null)[]): string {
    if (!values.some((value) => typeof value === "bigint")) return JSON.stringify(values);
    this.#odd |= LARGE_INTEGERS;
    return JSON.stringify(values.map(encodeValue));
  }

  /** The path leads to an object. */
  #addWhole(field: Field): void {
    if (field === UNNAMED) return;
    this.#noteOdd(field);
    this.#addToRest(keyOf(field, "o"), "1");
  }

  #noteOdd({ hot }: Field): void {
    if (hot >= 0) this.#odd |= HOT_FIELDS[hot]!.bit;
  }

  #addToRest(key: string, text: string): void {
    if (this.#rest.length + key.length + text.length > REST_CHARACTERS_MAX) this.#odd |= LARGE;
    else this.#rest += (this.#rest === "" ? "{" : ",") + key + text;
  }

  /** Whatever the event is made of. */
  #addFields(event: Columned): void {
    const values = new Map<string, FieldValue | FieldValue[]>();
    visitFields(event, (path, value) => {
      const known = values.get(path);
      if (known === undefined) values.set(path, value);
      else if (Array.isArray(known)) known.push(value);
      else values.set(path, [known, value]);
    });
    for (const [path, value] of values) {
      if (path === RAW.path || path === ENRICHMENT.path) continue;
      const field = path.length > PATH_CHARACTERS_MAX ? UNNAMED : fieldOf(path, false);
      if (value === OBJECT) this.#addWhole(field);
      else if (!Array.isArray(value)) this.#addScalar(field, value);
      else
        this.#addMany(
          field,
          value.map((item) => (item === OBJECT ? null : item)),
        );
    }
  }

  /** The row has no value of any field yet. */
  #takeBack(texts: number): void {
    const keep = ~(1 << (this.#length & 7));
    for (let column = FIRST_HOT; column < ODD; column++) this.#columns[column]!.valid[this.#length >> 3]! &= keep;
    this.#texts.length = texts;
    this.#long.length = texts * 2;
    this.#odd = 0;
    this.#rest = "";
    this.#nameless.length = 0;
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
    if (text.length <= INLINE_BYTES && writeInline(text, bytes, this.#length * TEXT_SLOT_BYTES)) return;
    this.#long.push(column, this.#length);
    this.#texts.push(text);
    this.#characters += text.length;
  }

  #valid(column: number): Column {
    const found = this.#columns[column]!;
    found.valid[this.#length >> 3]! |= 1 << (this.#length & 7);
    return found;
  }
}

/** False when the text is not plain ASCII. */
function writeInline(text: string, data: Uint8Array, at: number): boolean {
  for (let i = 0; i < INLINE_BYTES; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0;
    if (code > 127) return false;
    data[at + 4 + i] = code;
  }
  data[at] = text.length;
  data[at + 1] = data[at + 2] = data[at + 3] = 0;
  return true;
}

/** What is known of a path, made once for each that events keep having. */
interface Field {
  readonly path: string;
  /** Its place among HOT_FIELDS; below zero where it is none. */
  readonly hot: number;
  /** A key with a dot in it may lead to the same path as a nested one. */
  readonly isDotted: boolean;
  /** What stands in `rest` before a value of this type, once it was needed. */
  readonly keys: Partial<Record<RestType, string>>;
  readonly inner: Map<string, Field>;
}

function keyOf({ keys, path }: Field, type: RestType): string {
  return (keys[type] ??= restKey(type, path));
}

function fieldOf(path: string, isDotted: boolean): Field {
  const hot = hotField(path);
  return { path, hot: hot ? HOT_FIELDS.indexOf(hot) : -1, isDotted, keys: {}, inner: new Map() };
}

const RAW = fieldOf("raw", false);
const ENRICHMENT = fieldOf("enrichment", false);
/** Any field whose path is too long for anybody to ask for it: its values are found by a search in every field alone. */
const UNNAMED = fieldOf(UNNAMED_PATH, false);
let fieldsKnown = 0;

function fieldIn(within: Field, key: string): Field {
  if (within === UNNAMED || within.path.length + key.length >= PATH_CHARACTERS_MAX) return UNNAMED;
  let field = within.inner.get(key);
  if (!field) {
    field = fieldOf(`${within.path}.${key}`, key.includes("."));
    if (fieldsKnown >= FIELDS_MAX) return field;
    fieldsKnown++;
    within.inner.set(key, field);
  }
  return field;
}
