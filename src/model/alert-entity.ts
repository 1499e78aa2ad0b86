import { ENTITY_FIELDS, ENTITY_KINDS, entitiesOf, type Entity } from "./entity.ts";
import type { JsonObject } from "./event.ts";
import type { Group } from "./finding.ts";

// The entities of an alert: those that its events name. An alert grows for as long as an attack lasts, so it keeps the
// entities themselves and not the events that named them.

/** Limit of the entities that an alert keeps. */
export const ALERT_ENTITIES_MAX = 50;

export interface AlertEntity extends Entity {
  /** Events of the alert that name it; 0 for the group of an absence, which has no events. */
  readonly count: number;
}

export interface AlertEntities {
  /** The most frequent first, then the one seen last. */
  readonly entities: readonly AlertEntity[];
  /** Set once there were more than ALERT_ENTITIES_MAX: the least frequent were dropped. */
  readonly entitiesCut?: true | undefined;
}

export const NO_ENTITIES: AlertEntities = { entities: [] };

/** Adds the entities of events, the newest event first. */
export function addEntities(known: AlertEntities, events: readonly (readonly Entity[])[]): AlertEntities {
  const counts = new Map<string, AlertEntity>();
  const countOf = new Map(known.entities.map((entity) => [entityText(entity), entity.count]));
  for (const entity of events.flat()) {
    const text = entityText(entity);
    const count = (counts.get(text)?.count ?? countOf.get(text) ?? 0) + 1;
    counts.set(text, { kind: entity.kind, value: entity.value, count });
  }
  for (const entity of known.entities) {
    const text = entityText(entity);
    if (!counts.has(text)) counts.set(text, entity);
  }
  return limited([...counts.values()], known.entitiesCut);
}

/** Adds the group of an absence, which no event of the alert names. */
export function addGroupEntities(known: AlertEntities, group: Group | null): AlertEntities {
  const added = entitiesOfGroup(group).filter(
    (entity) => !known.entities.some((other) => entityText(other) === entityText(entity)),
  );
  return limited([...known.entities, ...added.map((entity) => ({ ...entity, count: 0 }))], known.entitiesCut);
}

function limited(all: readonly AlertEntity[], wasCut: true | undefined): AlertEntities {
  const sorted = all.toSorted((a, b) => b.count - a.count);
  const isCut = wasCut === true || sorted.length > ALERT_ENTITIES_MAX;
  return { entities: sorted.slice(0, ALERT_ENTITIES_MAX), ...(isCut && { entitiesCut: true as const }) };
}

/** `kind:value`, as filters name an entity. */
export function entityText({ kind, value }: Entity): string {
  return `${kind}:${value}`;
}

/** Reads `kind:value`; undefined if the text does not start with a kind. */
export function parseEntityText(text: string): Entity | undefined {
  const end = text.indexOf(":");
  const kind = ENTITY_KINDS.find((name) => name === text.slice(0, end));
  return kind && end < text.length - 1 ? { kind, value: text.slice(end + 1) } : undefined;
}

const SEPARATOR = ", ";
const RAW = "raw.";

/** The entities that a group names, if its fields are fields of entities. */
function entitiesOfGroup(group: Group | null): Entity[] {
  if (!group) return [];
  const fields = group.field.split(SEPARATOR);
  const values = fields.length === 1 ? [group.value] : group.value.split(SEPARATOR);
  if (fields.length !== values.length) return [];
  const raw: JsonObject = {};
  for (const [i, field] of fields.entries()) {
    const name = field.startsWith(RAW) ? field.slice(RAW.length) : "";
    if (ENTITY_NAMES.has(name)) raw[name] = values[i]!;
  }
  return entitiesOf(raw);
}

const ENTITY_NAMES: ReadonlySet<string> = new Set(Object.values(ENTITY_FIELDS).flat());
