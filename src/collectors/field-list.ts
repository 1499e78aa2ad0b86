import type { JsonObject } from "../model/event.ts";

// Fields of a line, one after the other, and the object that they make. Lines of one kind have the same fields in the same
// order: an object of that shape is copied and filled, which takes a third of the time of making it field by field.

/** Shapes that are remembered; with more of them, which only somebody who makes them up has, it begins anew. */
const SHAPES_MAX = 8000;

/** A name that fields have: one object for each, so that names are compared without looking at their letters. */
export interface Slot {
  readonly name: string;
  /** The list in which it was last used, and its place there. */
  usedIn: number;
  place: number;
}

export function makeSlot(name: string): Slot {
  // What objects understand in their own way is kept from doing so.
  return { name: name === "__proto__" ? "_proto_" : name, usedIn: 0, place: 0 };
}

interface Shape {
  readonly slot: Slot | undefined;
  readonly next: Map<Slot, Shape>;
  /** What came last time, most likely again. */
  likely: Shape | undefined;
  empty: JsonObject | undefined;
}

type FieldValue = string | number | bigint;

let root = makeShape(undefined);
let shapes = 0;
let lists = 0;

export class FieldList {
  /** Of this list alone. */
  readonly number = ++lists;
  readonly #slots: Slot[] = [];
  readonly #values: FieldValue[] = [];
  #shape = root;

  has(slot: Slot): boolean {
    return slot.usedIn === this.number;
  }

  get(slot: Slot): FieldValue | undefined {
    return slot.usedIn === this.number ? this.#values[slot.place] : undefined;
  }

  /** The value as text; empty where there is none. */
  text(slot: Slot): string {
    const value = this.get(slot);
    return typeof value === "string" ? value : "";
  }

  /** Puts a value where another may be already. */
  set(slot: Slot, value: FieldValue): void {
    if (this.has(slot)) this.#values[slot.place] = value;
    else this.add(slot, value);
  }

  /** The slot must be free. */
  add(slot: Slot, value: FieldValue): void {
    slot.usedIn = this.number;
    slot.place = this.#slots.length;
    this.#slots.push(slot);
    this.#values.push(value);
    const { likely } = this.#shape;
    this.#shape = likely?.slot === slot ? likely : follow(this.#shape, slot);
  }

  toObject(): JsonObject {
    const shape = this.#shape;
    shape.empty ??= this.#emptied();
    const made: JsonObject = { ...shape.empty };
    for (let index = 0; index < this.#slots.length; index++) made[this.#slots[index]!.name] = this.#values[index]!;
    return made;
  }

  /** Read from JSON, since an object that is made in one go is kept in a quicker form than one that grew. */
  #emptied(): JsonObject {
    const fields = this.#slots.map(({ name }, index) => [name, typeof this.#values[index] === "number" ? 0 : ""]);
    return JSON.parse(JSON.stringify(Object.fromEntries(fields))) as JsonObject;
  }
}

function follow(shape: Shape, slot: Slot): Shape {
  let next = shape.next.get(slot);
  if (next === undefined) {
    if (++shapes > SHAPES_MAX) {
      root = makeShape(undefined);
      shapes = 0;
    }
    next = makeShape(slot);
    shape.next.set(slot, next);
  }
  shape.likely = next;
  return next;
}

function makeShape(slot: Slot | undefined): Shape {
  return { slot, next: new Map(), likely: undefined, empty: undefined };
}
