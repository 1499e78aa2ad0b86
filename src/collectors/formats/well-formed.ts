import type { JsonValue } from "../../model/event.ts";
import { putForeign } from "./device-values.ts";

/** Replaces unpaired surrogates, which cannot be stored. Recursive: the caller must have checked the depth. */
export function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  const whole = {};
  for (const [key, part] of Object.entries(value)) putForeign(whole, key.toWellFormed(), wellFormed(part));
  return whole;
}
