import type { Event, JsonValue } from "./event.ts";

// Field paths: `type`, `raw.src_ip`, `enrichment.geo.country`, separated by dots. A path reaches into every element of an
// array. A key that contains a dot has the same path as the nested form.

export const TOP_FIELDS = ["id", "type", "source", "class", "severity", "timestamp"] as const;
export type TopField = (typeof TOP_FIELDS)[number];

/** Stands for every field at once. */
export const ANY_FIELD = "*";
/** Stands for every field of `raw`: values that the source sent, not those that the service added. */
export const ANY_RAW_FIELD = "raw.*";

export function isAnyField(path: string): boolean {
  return path === ANY_FIELD || path === ANY_RAW_FIELD;
}

const PATH_SEGMENTS_MAX = 32;
export const PATH_CHARACTERS_MAX = 512;

export function isTopField(path: string): path is TopField {
  return (TOP_FIELDS as readonly string[]).includes(path);
}

/** The fault of a path, or undefined if it is valid. */
export function pathFault(path: string): string | undefined {
  if (isTopField(path)) return undefined;
  if (path === ANY_RAW_FIELD) return "is allowed in conditions only: it stands for every field of raw";
  if (path.length > PATH_CHARACTERS_MAX) return `at most ${PATH_CHARACTERS_MAX} characters`;
  const segments = path.split(".");
  if (segments.length > PATH_SEGMENTS_MAX) return `at most ${PATH_SEGMENTS_MAX} segments`;
  if ((segments[0] !== "raw" && segments[0] !== "enrichment") || segments.includes("")) {
    return `not a field: use ${TOP_FIELDS.join(", ")}, raw.<path> or enrichment.<path>`;
  }
  return undefined;
}

/** A value at a path. Null is not a value; an object is one, without content. */
export type FieldValue = string | number | bigint | boolean | typeof OBJECT;
export const OBJECT = Symbol("object");

export type FieldReader = (event: Event) => FieldValue[];

/** Compiles a path to a function that returns all values at it in an event. */
export function fieldReader(path: string): FieldReader {
  if (isTopField(path)) return (event) => [event[path]];
  if (path === ANY_FIELD) return readEverything;
  if (path === ANY_RAW_FIELD) return readRaw;
  const segments = path.split(".");
  // keys[i][n]: the key of n + 1 segments from segment i on.
  const keys = segments.map((_, i) => segments.slice(i).map((_, n) => segments.slice(i, i + n + 1).join(".")));
  const walk = (value: JsonValue | undefined, at: number, found: FieldValue[]): void => {
    if (Array.isArray(value)) {
      for (const element of value) walk(element, at, found);
    } else if (at === segments.length) {
      if (value !== null && value !== undefined) found.push(typeof value === "object" ? OBJECT : value);
    } else if (value !== null && typeof value === "object") {
      for (const [n, key] of keys[at]!.entries()) {
        if (Object.hasOwn(value, key)) walk(value[key], at + n + 1, found);
      }
    }
  };
  const top = segments[0] as "raw" | "enrichment";
  return (event) => {
    const found: FieldValue[] = [];
    walk(event[top], 1, found);
    return found;
  };
}

/** The type and all values of `raw` and `enrichment`, without the other top-level fields. */
function readEverything(event: Event): FieldValue[] {
  const found: FieldValue[] = [event.type];
  visitFields(event, (_path, value) => {
    if (value !== OBJECT) found.push(value);
  });
  return found;
}

/** All values of `raw`. */
function readRaw({ raw }: Event): FieldValue[] {
  const found: FieldValue[] = [];
  visitFields({ raw, enrichment: {} }, (_path, value) => {
    if (value !== OBJECT) found.push(value);
  });
  return found;
}

/**
 * Visits every value of an event's `raw` and `enrichment` with its path. A path that is
 * too long to be queried is not extended further: a key of a megabyte may have thousands of values below it.
 */
export function visitFields(
  event: Pick<Event, "raw" | "enrichment">,
  visit: (path: string, value: FieldValue) => void,
): void {
  const walk = (value: JsonValue | undefined, path: string): void => {
    if (value === null || value === undefined) return;
    if (typeof value !== "object") return visit(path, value);
    if (Array.isArray(value)) {
      for (const element of value) walk(element, path);
      return;
    }
    visit(path, OBJECT);
    const isTooLong = path.length > PATH_CHARACTERS_MAX;
    for (const key of Object.keys(value)) walk(value[key], isTooLong ? path : `${path}.${key}`);
  };
  walk(event.raw, "raw");
  walk(event.enrichment, "enrichment");
}
