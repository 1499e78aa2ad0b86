import type { JsonValue } from "../model/event.ts";
import { putForeign } from "./fields.ts";

/** The value without halves of surrogate pairs, which no store can write down. It must not be deeper than what is read at all. */
export function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  const whole = {};
  for (const [key, part] of Object.entries(value)) putForeign(whole, key.toWellFormed(), wellFormed(part));
  return whole;
}
