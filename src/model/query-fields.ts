import { isAnyField, pathFault } from "./field.ts";

/** The field by whose name operators and aggregations know a time. */
export const TIME_FIELD = "timestamp";

/** The fields that queries on one kind of document can name. */
export interface QueryFields {
  /** Starts the names of the schemas in the OpenAPI document. */
  readonly prefix: string;
  /** What messages call the fields that are times. */
  readonly timeWords: string;
  /** True if queries can test any field at once. */
  readonly hasAnyField: boolean;
  pathFault(path: string): string | undefined;
  /** The name by which operators know a field: that of every time is TIME_FIELD. */
  operatorField(path: string): string;
  /** True for a field that has neither numbers nor times. */
  isText(path: string): boolean;
}

/** Top-level fields whose values are text. */
const TEXT_FIELDS: ReadonlySet<string> = new Set(["id", "type", "source", "class", "severity"]);

export const EVENT_FIELDS: QueryFields = {
  prefix: "",
  timeWords: TIME_FIELD,
  hasAnyField: true,
  pathFault,
  operatorField: (path) => path,
  isText: (path) => TEXT_FIELDS.has(path),
};

export function isTime(fields: QueryFields, path: string): boolean {
  return fields.operatorField(path) === TIME_FIELD;
}

/** True for a path that stands for any field, where queries have such a path. */
export function isAnyFieldOf(fields: QueryFields, path: string): boolean {
  return fields.hasAnyField && isAnyField(path);
}
