import { setImmediate as nextTurn } from "node:timers/promises";
import { parseSent } from "../lib/exact-json.ts";
import { piecesOf, withoutByteOrderMark } from "../lib/json.ts";
import type { JsonValue } from "../model/event.ts";
import type { CollectName } from "../model/key.ts";
import type { RefusalReason } from "./reading.ts";
import { BODY_NAMES } from "./webhooks/webhooks.ts";

// What a posted body holds, taken apart piece by piece: one that is too large is not even parsed, and however much there is,
// others get their turn in between.

export const POST_ITEMS_MAX = 10_000;
/** So much is parsed or read between two looks at what else there is to do. */
export const TURN_BYTES = 256 * 1024;

export interface PostedBody {
  /** Whether it is lines of text rather than one JSON. */
  readonly isLines: boolean;
  readonly bytes: Buffer;
}

/** Something that a body holds: a line as bytes, a value out of JSON, or what cannot be either. */
export type Thing =
  | { readonly kind: "line"; readonly bytes: Buffer }
  | { readonly kind: "value"; readonly value: JsonValue; readonly sizeBytes: number }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string; readonly bytes: Buffer };

export type Things =
  | { readonly kind: "things"; readonly things: readonly Thing[] }
  /** The body as a whole cannot be read. */
  | { readonly kind: "malformed" | "empty" | "too_many"; readonly message: string };

/** `thingBytesMax` is for the JSON of one thing. */
export async function thingsOf(name: CollectName, body: PostedBody, thingBytesMax: number): Promise<Things> {
  const bytes = withoutByteOrderMark(body.bytes);
  if (body.isLines) {
    const lines = linesOf(bytes);
    const fault = sizeFault(lines.length);
    if (fault) return fault;
    if (!isBodyName(name)) return { kind: "things", things: lines.map((line) => ({ kind: "line", bytes: line })) };
    return { kind: "things", things: await valuesOf(lines, thingBytesMax) };
  }
  // Nothing within it can be too large: it is parsed at once.
  if (bytes.length <= thingBytesMax) return thingsOfValue(bytes);
  const pieces = piecesOf(bytes, POST_ITEMS_MAX) ?? [bytes];
  if ("message" in pieces) return { kind: "malformed", message: pieces.message };
  const fault = sizeFault(pieces.length);
  if (fault) return fault;
  const things = await valuesOf(pieces, thingBytesMax);
  // One JSON that is wrong somewhere is wrong as a whole.
  for (const [index, thing] of things.entries()) {
    if (thing.kind === "refused" && thing.reason === "malformed")
      return { kind: "malformed", message: `at [${index}]: ${thing.message}` };
  }
  return { kind: "things", things };
}

function isBodyName(name: CollectName): boolean {
  return (BODY_NAMES as readonly string[]).includes(name);
}

function sizeFault(count: number): Things | undefined {
  if (count === 0) return { kind: "empty", message: "the body holds nothing" };
  if (count > POST_ITEMS_MAX) return { kind: "too_many", message: `the body holds more than ${POST_ITEMS_MAX} things` };
  return undefined;
}

function thingsOfValue(bytes: Buffer): Things {
  const parsed = parse(bytes);
  if ("message" in parsed) return { kind: "malformed", message: parsed.message };
  const values = Array.isArray(parsed.value) ? parsed.value : [parsed.value];
  const sizeBytes = Math.ceil(bytes.length / Math.max(1, values.length));
  return (
    sizeFault(values.length) ?? { kind: "things", things: values.map((value) => ({ kind: "value", value, sizeBytes })) }
  );
}

async function valuesOf(pieces: readonly Buffer[], thingBytesMax: number): Promise<Thing[]> {
  const things: Thing[] = [];
  let sinceTurn = 0;
  for (const bytes of pieces) {
    things.push(valueOf(bytes, thingBytesMax));
    sinceTurn += bytes.length;
    if (sinceTurn < TURN_BYTES) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  return things;
}

function valueOf(bytes: Buffer, thingBytesMax: number): Thing {
  if (bytes.length > thingBytesMax) {
    const message = `it is longer than ${thingBytesMax} bytes; a list within it can be sent in parts`;
    return { kind: "refused", reason: "too_long", message, bytes };
  }
  const parsed = parse(bytes);
  if ("message" in parsed) return { kind: "refused", reason: "malformed", message: parsed.message, bytes };
  return { kind: "value", value: parsed.value, sizeBytes: bytes.length };
}

function parse(bytes: Buffer): { readonly value: JsonValue } | { readonly message: string } {
  try {
    return { value: parseSent(bytes.toString("utf8")) as JsonValue };
  } catch (error) {
    // A part of the body may stand in the message: the refusal's sample shows it already, without what is secret.
    return { message: (error as SyntaxError).message.replace(/, (?:\.\.\.)?".*$/s, "") };
  }
}

/** Those that have something on them; one more than allowed is enough to refuse them all. */
function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length && lines.length <= POST_ITEMS_MAX;) {
    const lineFeed = bytes.indexOf(0x0a, start);
    const end = lineFeed < 0 ? bytes.length : lineFeed;
    const line = bytes.subarray(start, bytes[end - 1] === 0x0d && end > start ? end - 1 : end);
    if (line.length > 0) lines.push(line);
    start = end + 1;
  }
  return lines;
}
