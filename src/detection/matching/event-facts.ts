import { parseAddress } from "../../lib/ip.ts";
import { foldCase } from "../../lib/text.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, isAnyField, OBJECT, type FieldReader, type FieldValue } from "../../model/field.ts";
import { guardValue } from "./guard.ts";

// Facts about the current event that rules share, each computed once. Paths have a number while some rule needs them.

const TIMESTAMP_CHARACTERS = "2026-11-15T12:00:00.000Z".length;
const MINUTE_CHARACTERS = "2026-11-15T12:00:".length;
/** Strings up to this length are checked in a loop; for longer ones the built-in functions are faster. */
const SHORT_CHARACTERS_MAX = 24;

/** The cached facts of a path. Facts of an earlier round are stale. */
interface FieldSlot {
  readonly path: string;
  readonly read: FieldReader;
  users: number;
  round: number;
  values: readonly FieldValue[];
  foldedRound: number;
  /** The single value behind `folded` and `guarded`; consecutive events often repeat it. */
  foldedOf: FieldValue | undefined;
  /** Undefined if equal to the unfolded values, which is common. */
  folded: readonly FieldValue[] | undefined;
  guarded: readonly FieldValue[] | undefined;
  addressesRound: number;
  addresses: readonly bigint[];
}

export class EventFacts {
  readonly #numbers = new Map<string, number>();
  readonly #slots: (FieldSlot | undefined)[] = [];
  readonly #free: number[] = [];
  #event: Event | undefined;
  #round = 0;
  /** The last parsed timestamp. */
  #timestamp = "";
  #timestampMs = NaN;
  #minute = "-";
  #minuteMs = NaN;

  /** Returns the number of a path. */
  acquire(path: string): number {
    const known = this.#numbers.get(path);
    if (known !== undefined) {
      this.#slots[known]!.users++;
      return known;
    }
    const number = this.#free.pop() ?? this.#slots.length;
    this.#numbers.set(path, number);
    this.#slots[number] = {
      path,
      read: quickReader(path),
      users: 1,
      round: -1,
      values: NO_VALUES,
      foldedRound: -1,
      foldedOf: undefined,
      folded: undefined,
      guarded: undefined,
      addressesRound: -1,
      addresses: [],
    };
    return number;
  }

  release(number: number): void {
    const slot = this.#slots[number]!;
    if (--slot.users > 0) return;
    this.#numbers.delete(slot.path);
    this.#slots[number] = undefined;
    this.#free.push(number);
  }

  /** Makes this the current event. */
  setEvent(event: Event): void {
    this.#event = event;
    this.#round++;
  }

  get event(): Event {
    return this.#event!;
  }

  get timestampMs(): number {
    const { timestamp } = this.#event!;
    if (timestamp !== this.#timestamp) {
      this.#timestampMs = this.#parse(timestamp);
      this.#timestamp = timestamp;
    }
    return this.#timestampMs;
  }

  /** Consecutive events are mostly of the same minute, so that only five digits differ. */
  #parse(timestamp: string): number {
    if (timestamp.length !== TIMESTAMP_CHARACTERS || !timestamp.startsWith(this.#minute)) {
      const ms = Date.parse(timestamp);
      this.#minute = timestamp.slice(0, MINUTE_CHARACTERS);
      this.#minuteMs = Date.parse(`${this.#minute}00.000Z`);
      return ms;
    }
    const seconds = digitAt(timestamp, 17) * 10 + digitAt(timestamp, 18);
    const ms = digitAt(timestamp, 20) * 100 + digitAt(timestamp, 21) * 10 + digitAt(timestamp, 22);
    return this.#minuteMs + seconds * 1000 + ms;
  }

  values(number: number): readonly FieldValue[] {
    return this.#read(this.#slots[number]!).values;
  }

  /** The values, strings folded to one case. */
  folded(number: number): readonly FieldValue[] {
    const slot = this.#fold(this.#slots[number]!);
    return slot.folded ?? slot.values;
  }

  /** The values as guards compare them. */
  guarded(number: number): readonly FieldValue[] {
    const slot = this.#fold(this.#slots[number]!);
    return slot.guarded ?? slot.folded ?? slot.values;
  }

  #read(slot: FieldSlot): FieldSlot {
    if (slot.round === this.#round) return slot;
    slot.round = this.#round;
    slot.values = slot.read(this.#event!);
    return slot;
  }

  #fold(slot: FieldSlot): FieldSlot {
    if (slot.foldedRound === this.#round) return slot;
    slot.foldedRound = this.#round;
    const { values } = this.#read(slot);
    const only = values.length === 1 ? values[0] : undefined;
    if (only !== undefined && only === slot.foldedOf) return slot;
    slot.foldedOf = only;
    let folded: FieldValue[] | undefined;
    let hasLongS = false;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (typeof value !== "string" || isShortAndFolded(value)) continue;
      const text = foldCase(value);
      if (text !== value) (folded ??= [...values])[i] = text;
      if (text.includes("ſ")) hasLongS = true;
    }
    slot.folded = folded;
    slot.guarded = hasLongS ? (folded ?? values).map(guardValue) : undefined;
    return slot;
  }

  /** The values that are IP addresses. */
  addresses(number: number): readonly bigint[] {
    const slot = this.#slots[number]!;
    if (slot.addressesRound === this.#round) return slot.addresses;
    slot.addressesRound = this.#round;
    const addresses: bigint[] = [];
    for (const value of this.#read(slot).values) {
      const address = typeof value === "string" ? parseAddress(value) : undefined;
      if (address !== undefined) addresses.push(address);
    }
    return (slot.addresses = addresses);
  }

  /** The distinct scalar values. */
  scalars(number: number): readonly Scalar[] {
    return distinctScalars(this.values(number));
  }
}

function digitAt(text: string, at: number): number {
  return text.charCodeAt(at) - 48;
}

const NO_VALUES: FieldValue[] = [];

/** A fast path: most values are lower-case names or addresses. */
function isShortAndFolded(text: string): boolean {
  if (text.length > SHORT_CHARACTERS_MAX) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 128 || (code >= 65 && code <= 90)) return false;
  }
  return true;
}

/** A fast path: most paths lead to one scalar directly under `raw`. */
function quickReader(path: string): FieldReader {
  const read = fieldReader(path);
  const [top, key, ...rest] = path.split(".");
  if (top !== "raw" || key === undefined || rest.length > 0 || isAnyField(path)) return read;
  return (event) => {
    const value = event.raw[key];
    if (isScalar(value)) return [value];
    return value === undefined ? NO_VALUES : read(event);
  };
}

/** False for inherited members such as `constructor`. */
function isScalar(value: unknown): value is Scalar {
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" || type === "bigint";
}

function distinctScalars(values: readonly FieldValue[]): readonly Scalar[] {
  if (values.length === 1 && values[0] !== OBJECT) return values as readonly Scalar[];
  return [...new Set(values)].filter((value) => value !== OBJECT);
}
