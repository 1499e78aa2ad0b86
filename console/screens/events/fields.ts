import { ENTITY_FIELDS, ENTITY_KINDS, type EntityKind } from "../../components/entities/entity.ts";
import type { Event } from "../../data/client.ts";

// The fields of an event: as rows of a tree, and as values for a filter.

export type Scalar = string | number | boolean | bigint;

export interface FieldRow {
  readonly path: string;
  /** The last part of the path. */
  readonly name: string;
  readonly depth: number;
  /** Undefined for an object, whose fields follow. */
  readonly value: Scalar | null | undefined;
}

const ROWS_MAX = 1000;
const TOP = ["type", "source", "class", "severity", "timestamp", "id"] as const;

function addRows(rows: FieldRow[], value: unknown, path: string, name: string, depth: number): void {
  if (rows.length >= ROWS_MAX) return;
  if (Array.isArray(value)) {
    // A path reaches into every element of a list.
    for (const element of value) addRows(rows, element, path, name, depth);
  } else if (typeof value === "object" && value !== null) {
    rows.push({ path, name, depth, value: undefined });
    for (const [key, inner] of Object.entries(value)) addRows(rows, inner, `${path}.${key}`, key, depth + 1);
  } else {
    rows.push({ path, name, depth, value: value as Scalar | null });
  }
}

/** Everything that an event has, in the order of its document; its own fields last. */
export function fieldRows(event: Event): FieldRow[] {
  const rows: FieldRow[] = [];
  for (const part of ["raw", "enrichment"] as const) {
    if (Object.keys(event[part]).length > 0) addRows(rows, event[part], part, part, 0);
  }
  for (const name of TOP) rows.push({ path: name, name, depth: 0, value: event[name] });
  return rows;
}

/** Every value at a path; it reaches into every element of a list, and a key may itself contain dots. */
export function valuesAt(event: Event, path: string): Scalar[] {
  const found: Scalar[] = [];
  walk(event, path.split("."), found);
  return found;
}

function walk(value: unknown, segments: readonly string[], found: Scalar[]): void {
  if (Array.isArray(value)) {
    for (const element of value) walk(element, segments, found);
  } else if (segments.length === 0) {
    if (value !== null && value !== undefined && typeof value !== "object") found.push(value as Scalar);
  } else if (typeof value === "object" && value !== null) {
    for (let length = 1; length <= segments.length; length++) {
      const key = segments.slice(0, length).join(".");
      if (Object.hasOwn(value, key)) walk((value as Record<string, unknown>)[key], segments.slice(length), found);
    }
  }
}

const KIND_OF_PATH: ReadonlyMap<string, EntityKind> = new Map(
  ENTITY_KINDS.flatMap((kind) => ENTITY_FIELDS[kind].map((field) => [`raw.${field}`, kind] as const)),
);

export const entityKindOf = (path: string): EntityKind | undefined => KIND_OF_PATH.get(path);
