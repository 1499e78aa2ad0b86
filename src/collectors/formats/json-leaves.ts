import { parseSent } from "../../lib/exact-json.ts";
import { isDeeperThan } from "../../lib/json.ts";
import type { JsonValue } from "../../model/event.ts";
import { FIELDS_MAX, objectOf } from "./device-values.ts";

// The values of a JSON object in a line, by their paths.

const DEPTH_MAX = 16;

export interface JsonLeaves {
  readonly leaves: (readonly [string, string])[];
  /** Values past the limits. */
  readonly leftOut: number;
}

/** Undefined if the rest of the text is not an object. Items of a list are joined; null is no value. */
export function jsonLeaves(text: string, start: number): JsonLeaves | undefined {
  if (text.charCodeAt(start) !== 0x7b) return undefined;
  let object;
  try {
    object = objectOf(parseSent(text.slice(start)));
  } catch {
    return undefined;
  }
  if (object === undefined) return undefined;
  const leaves: [string, string][] = [];
  let leftOut = 0;
  // Values come from the network: recursion without a limit would overflow the stack.
  const visit = (value: JsonValue, path: string, depth: number) => {
    const inner = objectOf(value);
    if (inner !== undefined && depth < DEPTH_MAX) {
      for (const key of Object.keys(inner)) visit(inner[key]!, path === "" ? key : `${path}.${key}`, depth + 1);
    } else if (inner !== undefined || leaves.length >= FIELDS_MAX || isDeeperThan(value, DEPTH_MAX)) leftOut++;
    else if (value !== null) leaves.push([path, textOfLeaf(value)]);
  };
  visit(object, "", 0);
  return { leaves, leftOut };
}

const textOfLeaf = (value: JsonValue) => (Array.isArray(value) ? value.map(plainText).join(", ") : plainText(value));

const plainText = (value: JsonValue) => (typeof value === "object" ? JSON.stringify(value) : String(value));
