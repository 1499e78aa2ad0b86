import type { JsonObject } from "../../model/event.ts";

// Collects the fields of a line and builds their object. Lines of one kind have the same fields in the same order, so an
// empty object of that shape is copied and filled, in a third of the time of adding fields one by one.

/** Cached shapes. The cache is cleared when full, which only made-up fields can cause. */
const SHAPES_MAX = 8000;

/** A field name. One object per name, so that names are compared by identity. */
export interface LineFieldSlot {
  readonly name: string;
  /** Number of the list that last used it, and its index there. */
  usedIn: number;
  index: number;
}

export function makeFieldSlot(name: string): LineFieldSlot {
  // Assigning `__proto__` would change the prototype.
  return { name: name === "__proto__" ? "_proto_" : name, usedIn: 0, index: 0 };
}

interface FieldShape {
  readonly slot: LineFieldSlot | undefined;
  readonly next: Map<LineFieldSlot, FieldShape>;
  /** The shape that followed last time, and most likely follows again. */
  likely: FieldShape | undefined;
  empty: JsonObject | undefined;
}

type ListedValue = string | number | bigint | boolean | string[];

let root = makeShape(undefined);
let shapes = 0;
let lists = 0;

export class FieldList {
  /** Unique number of this list. */
  readonly number = ++lists;
  readonly #slots: LineFieldSlot[] = [];
  readonly #values: ListedValue[] = [];
  #shape = root;

  has(slot: LineFieldSlot): boolean {
    return slot.usedIn === this.number;
  }

  get(slot: LineFieldSlot): ListedValue | undefined {
    return slot.usedIn === this.number ? this.#values[slot.index] : undefined;
  }

  /** The value if it is a text; empty otherwise. */
  text(slot: LineFieldSlot): string {
    const value = this.get(slot);
    return typeof value === "string" ? value : "";
  }

  /** Adds or replaces a value. */
  set(slot: LineFieldSlot, value: ListedValue): void {
    if (this.has(slot)) this.#values[slot.index] = value;
    else this.add(slot, value);
  }

  /** Adds a value. The slot must be unused. */
  add(slot: LineFieldSlot, value: ListedValue): void {
    slot.usedIn = this.number;
    slot.index = this.#slots.length;
    this.#slots.push(slot);
    this.#values.push(value);
    const { likely } = this.#shape;
    this.#shape = likely?.slot === slot ? likely : follow(this.#shape, slot);
  }

  toObject(): JsonObject {
    const shape = this.#shape;
    shape.empty ??= this.#emptyObject();
    const made: JsonObject = { ...shape.empty };
    for (let index = 0; index < this.#slots.length; index++) made[this.#slots[index]!.name] = this.#values[index]!;
    return made;
  }

  /** Parsed from JSON, since V8 stores an object made at once in a faster form than one that grew. */
  #emptyObject(): JsonObject {
    const fields = this.#slots.map(({ name }, index) => [name, typeof this.#values[index] === "number" ? 0 : ""]);
    return JSON.parse(JSON.stringify(Object.fromEntries(fields))) as JsonObject;
  }
}

function follow(shape: FieldShape, slot: LineFieldSlot): FieldShape {
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

function makeShape(slot: LineFieldSlot | undefined): FieldShape {
  return { slot, next: new Map(), likely: undefined, empty: undefined };
}
