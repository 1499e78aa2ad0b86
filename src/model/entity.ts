import { canonicalAddress } from "../lib/ip.ts";
import type { FieldNameKey } from "./field-names.ts";
import type { JsonObject } from "./event.ts";

// Entities are the things that events are about: an address, a person, a door. The fields of `raw` that name them mean the same
// for every device, so the same entity is found in the events of all sources.

export const ENTITY_KINDS = ["address", "user", "door", "camera", "device", "phone"] as const;
export type EntityKind = (typeof ENTITY_KINDS)[number];

export interface Entity {
  readonly kind: EntityKind;
  readonly value: string;
}

/** Longer values name nothing that a person could look up. */
export const ENTITY_CHARACTERS_MAX = 256;

export const ENTITY_FIELDS = {
  address: ["src_ip", "dst_ip", "local_ip", "device_ip"],
  user: ["user"],
  door: ["door"],
  camera: ["camera"],
  device: ["src_mac", "dst_mac", "host", "src_host", "dst_host", "device", "device_mac"],
  phone: ["from", "to"],
} as const satisfies Record<EntityKind, readonly FieldNameKey[]>;

/** What devices write where they have no name. */
const NAMELESS = new Set(["", "unknown", "-", "n/a", "none", "null"]);

/** The entities that an event names, each once, in the order of `ENTITY_KINDS`. */
export function entitiesOf(raw: JsonObject): Entity[] {
  const entities: Entity[] = [];
  for (const kind of ENTITY_KINDS) {
    const first = entities.length;
    for (const field of ENTITY_FIELDS[kind]) {
      const text = raw[field];
      if (typeof text !== "string" || !isName(text)) continue;
      const value = canonicalValue(kind, text);
      if (!hasValue(entities, first, value)) entities.push({ kind, value });
    }
  }
  return entities;
}

function hasValue(entities: readonly Entity[], first: number, value: string): boolean {
  for (let nth = first; nth < entities.length; nth++) if (entities[nth]!.value === value) return true;
  return false;
}

/** All spellings of an address are one entity. */
export function canonicalValue(kind: EntityKind, value: string): string {
  return kind === "address" ? (canonicalAddress(value) ?? value) : value;
}

/** False for what devices write where they have no name, and for texts that are too long. */
export function isName(value: string): boolean {
  return value.length <= ENTITY_CHARACTERS_MAX && !NAMELESS.has(value.trim().toLowerCase());
}
