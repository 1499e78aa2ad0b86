import type { Entity, EntityKind } from "../../components/entities/entity.ts";
import type { EntityDetail } from "../../data/entities.ts";
import { entityValue } from "../../data/event-conditions.ts";

// What is known about an entity beside its own name.

const NAMES_MAX = 3;

/** Kinds that say what a thing is called: an address is used by a device and a person, and the other way round. */
const CALLED_BY: Record<EntityKind, readonly EntityKind[]> = {
  address: ["device", "user"],
  device: ["user", "address"],
  user: [],
  phone: ["user"],
  door: [],
  camera: [],
};

/** An event names many things; only one that is in most events of the entity belongs to it. */
const SHARE_MIN = 0.3;

export function knownNames({ kind, related }: Pick<EntityDetail, "kind" | "related">): Entity[] {
  if (related === null || related.events_read === 0) return [];
  return CALLED_BY[kind]
    .flatMap((other) =>
      related.entities.filter((one) => one.kind === other && one.events / related.events_read >= SHARE_MIN).slice(0, 2),
    )
    .slice(0, NAMES_MAX)
    .map(({ kind: nameKind, value }) => ({ kind: nameKind, value }));
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
