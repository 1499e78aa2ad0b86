import type { Fault } from "../../../data/client.ts";

// A rule while it is being written: any JSON, since the YAML may say anything. The service decides what is a rule.

export type Draft = Readonly<Record<string, unknown>>;
export type Path = readonly (string | number)[];

/** `conditions[2].any[0].cidr` as its keys. */
export function readPath(field: string): Path {
  const path: (string | number)[] = [];
  for (const [, name, index] of field.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    path.push(name ?? Number(index));
  }
  return path;
}

export function writePath(path: Path): string {
  return path.map((key, index) => (typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${key}`)).join("");
}

export function valueAt(draft: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string | number, unknown>)[key]
        : undefined,
    draft,
  );
}

/** The draft with another value; `undefined` removes it. */
export function withValue<Whole>(draft: Whole, path: Path, value: unknown): Whole {
  const [key, ...rest] = path;
  if (key === undefined) return value as Whole;
  const inner = withValue(valueAt(draft, [key]), rest, value);
  if (typeof key === "number") {
    const items = Array.isArray(draft) ? (draft as unknown[]) : [];
    return (inner === undefined ? items.toSpliced(key, 1) : items.toSpliced(key, 1, inner)) as Whole;
  }
  const { [key]: _old, ...others } = (typeof draft === "object" && draft !== null ? draft : {}) as Record<
    string,
    unknown
  >;
  if (inner === undefined) return others as Whole;
  // An existing key keeps its place.
  return { ...(draft as object), [key]: inner } as Whole;
}

/** A simulation names the fields of the rule inside its request. */
export function faultsOfRule(faults: readonly Fault[]): readonly Fault[] {
  return faults.map(({ field, message }) => ({ field: field.replace(/^rule\./, ""), message }));
}

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Field paths, which are one text or a list of texts, as they are typed: separated by commas. */
export const pathsText = (value: unknown) => (Array.isArray(value) ? value.join(", ") : text(value));

export function readPaths(typed: string): string | string[] | undefined {
  const paths = typed
    .split(",")
    .map((path) => path.trim())
    .filter((path) => path !== "");
  return paths.length > 1 ? paths : paths[0];
}

/** The fields of a rule that the form shows, in the order of its YAML. */
export const RULE_FIELDS = [
  "name",
  "description",
  "severity",
  "enabled",
  "source",
  "tags",
  "references",
  "title",
  "conditions",
  "parts",
  "window",
  "threshold",
  "sequence",
  "sequence_order",
  "sequence_min",
  "group_by",
  "absence",
  "dedup",
  "exceptions",
  "actions",
  "tests",
];
