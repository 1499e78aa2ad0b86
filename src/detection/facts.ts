import { parseAddress } from "../lib/ip.ts";
import { foldCase } from "../lib/text.ts";
import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import { fieldReader, OBJECT, type FieldReader, type FieldValue } from "../model/field.ts";
import { guardValue } from "./guard.ts";

// What rules ask of the event at hand, each thing found out once. Paths are numbered while some rule needs them.

const TIMESTAMP_CHARACTERS = "2026-11-15T12:00:00.000Z".length;
const MINUTE_CHARACTERS = "2026-11-15T12:00:".length;

interface Path {
  readonly path: string;
  readonly read: FieldReader;
  users: number;
}

export class Facts {
  readonly #slots = new Map<string, number>();
  readonly #paths: (Path | undefined)[] = [];
  readonly #free: number[] = [];
  #event: Event | undefined;
  #round = 0;
  #timestampMs: number | undefined;
  #minute = "-";
  #minuteMs = 0;

  readonly #values: (readonly FieldValue[])[] = [];
  readonly #valuesRound: number[] = [];
  readonly #folded: (readonly FieldValue[])[] = [];
  readonly #foldedRound: number[] = [];
  readonly #addresses: (readonly bigint[])[] = [];
  readonly #addressesRound: number[] = [];

  /** The number under which the path's values are asked for. */
  acquire(path: string): number {
    const known = this.#slots.get(path);
    if (known !== undefined) {
      this.#paths[known]!.users++;
      return known;
    }
    const slot = this.#free.pop() ?? this.#paths.length;
    this.#slots.set(path, slot);
    this.#paths[slot] = { path, read: quickReader(path), users: 1 };
    this.#valuesRound[slot] = this.#foldedRound[slot] = this.#addressesRound[slot] = -1;
    return slot;
  }

  release(slot: number): void {
    const path = this.#paths[slot]!;
    if (--path.users > 0) return;
    this.#slots.delete(path.path);
    this.#paths[slot] = undefined;
    this.#values[slot] = this.#folded[slot] = [];
    this.#free.push(slot);
  }

  /** From here on everything is about this event. */
  turnTo(event: Event): void {
    this.#event = event;
    this.#round++;
    this.#timestampMs = undefined;
  }

  get event(): Event {
    return this.#event!;
  }

  get timestampMs(): number {
    return (this.#timestampMs ??= this.#parse(this.#event!.timestamp));
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

  values(slot: number): readonly FieldValue[] {
    if (this.#valuesRound[slot] === this.#round) return this.#values[slot]!;
    this.#valuesRound[slot] = this.#round;
    return (this.#values[slot] = this.#paths[slot]!.read(this.#event!));
  }

  /** The same with texts in one case. */
  folded(slot: number): readonly FieldValue[] {
    if (this.#foldedRound[slot] === this.#round) return this.#folded[slot]!;
    this.#foldedRound[slot] = this.#round;
    const values = this.values(slot);
    let folded = values;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (typeof value !== "string") continue;
      const text = foldCase(value);
      if (text === value) continue;
      if (folded === values) folded = [...values];
      (folded as FieldValue[])[i] = text;
    }
    return (this.#folded[slot] = folded);
  }

  /** The values as guards compare them. */
  guarded(slot: number): readonly FieldValue[] {
    const folded = this.folded(slot);
    for (let i = 0; i < folded.length; i++) {
      const value = folded[i]!;
      if (typeof value === "string" && value.includes("ſ")) return folded.map(guardValue);
    }
    return folded;
  }

  /** Those values that are addresses. */
  addresses(slot: number): readonly bigint[] {
    if (this.#addressesRound[slot] === this.#round) return this.#addresses[slot]!;
    this.#addressesRound[slot] = this.#round;
    const addresses: bigint[] = [];
    for (const value of this.values(slot)) {
      const address = typeof value === "string" ? parseAddress(value) : undefined;
      if (address !== undefined) addresses.push(address);
    }
    return (this.#addresses[slot] = addresses);
  }

  /** The different values that can be named. */
  scalars(slot: number): readonly Scalar[] {
    return differentScalars(this.values(slot));
  }
}

function digitAt(text: string, at: number): number {
  return text.charCodeAt(at) - 48;
}

const NOTHING: FieldValue[] = [];

/** Most paths lead to one plain value right under `raw`. */
function quickReader(path: string): FieldReader {
  const read = fieldReader(path);
  const [top, key, ...rest] = path.split(".");
  if (top !== "raw" || key === undefined || rest.length > 0) return read;
  return (event) => {
    const value = event.raw[key];
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return [value];
    return value === undefined ? NOTHING : read(event);
  };
}

function differentScalars(values: readonly FieldValue[]): readonly Scalar[] {
  if (values.length === 1 && values[0] !== OBJECT) return values as readonly Scalar[];
  return [...new Set(values)].filter((value) => value !== OBJECT);
}
