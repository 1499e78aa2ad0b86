import { parseAddress } from "../lib/ip.ts";
import { foldCase } from "../lib/text.ts";
import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import { fieldReader, isAnyField, OBJECT, type FieldReader, type FieldValue } from "../model/field.ts";
import { guardValue } from "./guard.ts";

// What rules ask of the event at hand, each thing found out once. Paths are numbered while some rule needs them.

const TIMESTAMP_CHARACTERS = "2026-11-15T12:00:00.000Z".length;
const MINUTE_CHARACTERS = "2026-11-15T12:00:".length;
/** Texts up to here are looked at here; longer ones by the engine's own means, which take longer to begin. */
const SHORT_CHARACTERS_MAX = 24;

/** A path and what is known of it; what is of an earlier round is out of date. */
interface Slot {
  readonly path: string;
  readonly read: FieldReader;
  users: number;
  round: number;
  values: readonly FieldValue[];
  foldedRound: number;
  /** The only value that these two were last made of: of one event to the next it is often the same. */
  foldedOf: FieldValue | undefined;
  /** Undefined where it is the same as what it is made of: mostly. */
  folded: readonly FieldValue[] | undefined;
  guarded: readonly FieldValue[] | undefined;
  addressesRound: number;
  addresses: readonly bigint[];
}

export class Facts {
  readonly #numbers = new Map<string, number>();
  readonly #slots: (Slot | undefined)[] = [];
  readonly #free: number[] = [];
  #event: Event | undefined;
  #round = 0;
  /** Of the event before, as long as nobody has asked for this one's. */
  #timestamp = "";
  #timestampMs = NaN;
  #minute = "-";
  #minuteMs = NaN;

  /** The number under which the path's values are asked for. */
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
      values: NOTHING,
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

  /** From here on everything is about this event. */
  turnTo(event: Event): void {
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

  /** Events that come together are mostly of the same minute: what differs are five digits. */
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

  /** The same with texts in one case. */
  folded(number: number): readonly FieldValue[] {
    const slot = this.#fold(this.#slots[number]!);
    return slot.folded ?? slot.values;
  }

  /** The values as guards compare them. */
  guarded(number: number): readonly FieldValue[] {
    const slot = this.#fold(this.#slots[number]!);
    return slot.guarded ?? slot.folded ?? slot.values;
  }

  #read(slot: Slot): Slot {
    if (slot.round === this.#round) return slot;
    slot.round = this.#round;
    slot.values = slot.read(this.#event!);
    return slot;
  }

  #fold(slot: Slot): Slot {
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

  /** Those values that are addresses. */
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

  /** The different values that can be named. */
  scalars(number: number): readonly Scalar[] {
    return differentScalars(this.values(number));
  }
}

function digitAt(text: string, at: number): number {
  return text.charCodeAt(at) - 48;
}

const NOTHING: FieldValue[] = [];

/** Names and addresses are in small letters, and most values are one of these. */
function isShortAndFolded(text: string): boolean {
  if (text.length > SHORT_CHARACTERS_MAX) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 128 || (code >= 65 && code <= 90)) return false;
  }
  return true;
}

/** Most paths lead to one plain value right under `raw`. */
function quickReader(path: string): FieldReader {
  const read = fieldReader(path);
  const [top, key, ...rest] = path.split(".");
  if (top !== "raw" || key === undefined || rest.length > 0 || isAnyField(path)) return read;
  return (event) => {
    const value = event.raw[key];
    if (isScalar(value)) return [value];
    return value === undefined ? NOTHING : read(event);
  };
}

/** Not what every object has under names such as `constructor`. */
function isScalar(value: unknown): value is Scalar {
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" || type === "bigint";
}

function differentScalars(values: readonly FieldValue[]): readonly Scalar[] {
  if (values.length === 1 && values[0] !== OBJECT) return values as readonly Scalar[];
  return [...new Set(values)].filter((value) => value !== OBJECT);
}
