import type { JsonObject, JsonValue } from "../model/event.ts";

/** Reads the value at a path: undefined if there is none, an array if the path crosses one, else the value itself. */
export type PathReader = (row: JsonObject) => JsonValue | undefined;

/** Follows a path by the rules of model/field.ts but returns values unchanged, objects and nulls included. */
export function pathReader(path: string): PathReader {
  const [top, ...segments] = path.split(".") as [string, ...string[]];
  if (segments.length === 0) return (row) => row[top];
  if (segments.length === 1) {
    const key = segments[0]!;
    const read = (value: JsonValue | undefined): JsonValue | undefined => {
      if (Array.isArray(value)) return withoutNulls(value.map((element) => read(element) ?? null));
      if (value === null || typeof value !== "object") return undefined;
      return Object.hasOwn(value, key) ? withoutNulls(value[key]) : undefined;
    };
    return (row) => read(row[top]);
  }
  // keys[i][n]: n + 1 segments from segment i on, joined to one key.
  const keys = segments.map((_, i) => segments.slice(i).map((_, n) => segments.slice(i, i + n + 1).join(".")));
  const walk = (value: JsonValue | undefined, at: number, found: PathMatches): void => {
    if (Array.isArray(value)) {
      found.isList = true;
      for (const element of value) walk(element, at, found);
    } else if (at === segments.length) {
      if (value !== null && value !== undefined) found.values.push(value);
    } else if (value !== null && typeof value === "object") {
      const candidates = keys[at]!;
      for (let n = 0; n < candidates.length; n++) {
        const key = candidates[n]!;
        if (Object.hasOwn(value, key)) walk(value[key], at + n + 1, found);
      }
    }
  };
  return (row) => {
    const found: PathMatches = { values: [], isList: false };
    walk(row[top], 0, found);
    return found.isList || found.values.length > 1 ? found.values : found.values[0];
  };
}

interface PathMatches {
  readonly values: JsonValue[];
  isList: boolean;
}

function withoutNulls(value: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(value)) return value ?? undefined;
  return value.flatMap((element) => {
    const inner = withoutNulls(element);
    return inner === undefined ? [] : inner;
  });
}
