import type { Entity, EntityKind } from "../../components/entities/entity.ts";
import type { EntityDetail } from "../../data/entities.ts";
import type { FieldValues } from "../../data/events.ts";
import { entityValue } from "../../data/event-conditions.ts";

// What is known about an entity beside its own name.

const NAMES_MAX = 3;
const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i;

export interface Naming {
  /** Events with this field are sent by the entity itself. */
  readonly field: string;
  /** The fields of such events that say what it is called. */
  readonly names: readonly { readonly field: string; readonly kind: EntityKind }[];
}

/** Which field of the entity's own events tells its names; undefined for kinds that have no other. */
export function namingOf({ kind, value }: Entity): Naming | undefined {
  const user = { field: "raw.user", kind: "user" } as const;
  const host = { field: "raw.host", kind: "device" } as const;
  const mac = { field: "raw.src_mac", kind: "device" } as const;
  switch (kind) {
    case "address":
      return { field: "raw.src_ip", names: [host, mac] };
    case "device": {
      const address = { field: "raw.src_ip", kind: "address" } as const;
      return MAC.test(value)
        ? { field: "raw.src_mac", names: [host, address, user] }
        : { field: "raw.host", names: [address, mac, user] };
    }
    case "phone":
      return { field: "raw.from", names: [user] };
    default:
      return undefined;
  }
}

/** The most frequent name of each field. */
export function knownNames({ names }: Naming, values: ReadonlyMap<string, FieldValues>): Entity[] {
  return names
    .flatMap(({ field, kind }) => {
      const most = values.get(field)?.values[0];
      return most === undefined ? [] : [{ kind, value: most.value }];
    })
    .slice(0, NAMES_MAX);
}

interface Enrichment {
  readonly geo?: { readonly country?: unknown; readonly city?: unknown };
  readonly abuse_ipdb?: { readonly score?: unknown };
  readonly lists?: unknown;
}

/** Where it is, and whether others complain about it. */
export function knownWords({ enrichment }: Pick<EntityDetail, "enrichment">): string[] {
  const { geo, abuse_ipdb: abuse, lists } = enrichment as Enrichment;
  const words: string[] = [];
  const place = [geo?.city, geo?.country].filter((part) => typeof part === "string");
  if (place.length > 0) words.push(place.join(", "));
  if (typeof abuse?.score === "number") words.push(`abuse score ${abuse.score} of 100`);
  if (Array.isArray(lists) && lists.length > 0)
    words.push(`on ${lists.length === 1 ? "a list" : `${lists.length} lists`}`);
  return words;
}

/** The filter of the events' screen for events that name all of these. */
export function entityFilter(...entities: readonly Entity[]): string {
  return entities
    .map((entity) => `entity=${entityValue(entity).replaceAll(/[\\,]/g, (character) => `\\${character}`)}`)
    .join(",");
}

export interface RelatedGroup {
  readonly kind: EntityKind;
  readonly entities: readonly { readonly value: string; readonly events: number }[];
}

const GROUP_MAX = 16;

/** What occurs in the same events, by kind. */
export function relatedGroups({ related }: Pick<EntityDetail, "related">): RelatedGroup[] {
  const groups = new Map<EntityKind, { value: string; events: number }[]>();
  for (const { kind, value, events } of related?.entities ?? []) {
    const group = groups.get(kind) ?? [];
    if (group.length < GROUP_MAX) group.push({ value, events });
    groups.set(kind, group);
  }
  return [...groups].map(([kind, entities]) => ({ kind, entities }));
}
