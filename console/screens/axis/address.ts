import { ENTITY_KINDS, type Entity, type EntityKind } from "../../components/entities/entity.ts";

// The parts of the screen's address that are its own.

const ENTITIES_MAX = 5;
const NEXT_ENTITY = new RegExp(`,(?=(?:${ENTITY_KINDS.join("|")}):)`);

/** `door:Loading dock,address:10.20.3.240`; what is none of these is left out. */
export function readEntities(text: string | undefined): Entity[] {
  if (text === undefined) return [];
  const entities: Entity[] = [];
  for (const part of text.split(NEXT_ENTITY)) {
    const [, kind, value] = /^([a-z]+):(.+)$/s.exec(part) ?? [];
    const isKnown = (ENTITY_KINDS as readonly string[]).includes(kind ?? "");
    if (!isKnown || entities.some((other) => other.kind === kind && other.value === value)) continue;
    entities.push({ kind: kind as EntityKind, value: value! });
  }
  return entities.slice(0, ENTITIES_MAX);
}

export function writeEntities(entities: readonly Entity[]): string | undefined {
  return entities.length === 0 ? undefined : entities.map(({ kind, value }) => `${kind}:${value}`).join(",");
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The length of a view that follows the clock, as the address writes it: `32m`, `7d`. */
export function durationText(lengthMs: number): string {
  if (lengthMs < 2 * MINUTE_MS) return `${Math.max(10, Math.round(lengthMs / 1000))}s`;
  if (lengthMs >= 2 * DAY_MS) return `${Math.round(lengthMs / DAY_MS)}d`;
  const minutes = Math.round(lengthMs / MINUTE_MS);
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}
