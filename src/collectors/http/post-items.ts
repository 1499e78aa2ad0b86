import { setImmediate as nextTurn } from "node:timers/promises";
import { parseSent } from "../../lib/exact-json.ts";
import { piecesOf, withoutByteOrderMark } from "../../lib/json.ts";
import type { JsonValue } from "../../model/event.ts";
import type { CollectName } from "../../model/key.ts";
import type { RefusalReason } from "../formats/reading.ts";
import { BODY_NAMES } from "../formats/unifi/webhooks.ts";

// Splits a posted body into items. An item that is too large is refused without being parsed, and large bodies yield to
// other requests in between.

export const POST_ITEMS_MAX = 10_000;
/** Bytes parsed or read before yielding to other requests. */
export const TURN_BYTES = 256 * 1024;

export interface PostedBody {
  /** True for lines of text, false for one JSON document. */
  readonly isLines: boolean;
  readonly bytes: Buffer;
}

/** An item of a body: a line as bytes, a JSON value, or a refused part. */
export type PostItem =
  | { readonly kind: "line"; readonly bytes: Buffer }
  | { readonly kind: "value"; readonly value: JsonValue; readonly sizeBytes: number }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string; readonly bytes: Buffer };

export type PostItems =
  | { readonly kind: "items"; readonly items: readonly PostItem[] }
  /** The body cannot be read as a whole. */
  | { readonly kind: "malformed" | "empty" | "too_many"; readonly message: string };

/** `itemBytesMax` limits the JSON of one item. */
export async function splitPostBody(name: CollectName, body: PostedBody, itemBytesMax: number): Promise<PostItems> {
  const bytes = withoutByteOrderMark(body.bytes);
  if (body.isLines) {
    const lines = nonEmptyLines(bytes);
    const fault = sizeFault(lines.length);
    if (fault) return fault;
    if (!isBodyName(name)) return { kind: "items", items: lines.map((line) => ({ kind: "line", bytes: line })) };
    return { kind: "items", items: await valuesOf(lines, itemBytesMax) };
  }
  // No item in it can be too large: parse it at once.
  if (bytes.length <= itemBytesMax) return itemsOfValue(bytes);
  const pieces = piecesOf(bytes, POST_ITEMS_MAX) ?? [bytes];
  if ("message" in pieces) return { kind: "malformed", message: pieces.message };
  const fault = sizeFault(pieces.length);
  if (fault) return fault;
  const items = await valuesOf(pieces, itemBytesMax);
  // A syntax error anywhere makes the whole document malformed.
  for (const [index, item] of items.entries()) {
    if (item.kind === "refused" && item.reason === "malformed")
      return { kind: "malformed", message: `at [${index}]: ${item.message}` };
  }
  return { kind: "items", items };
}

function isBodyName(name: CollectName): boolean {
  return (BODY_NAMES as readonly string[]).includes(name);
}

function sizeFault(count: number): PostItems | undefined {
  if (count === 0) return { kind: "empty", message: "the body is empty" };
  if (count > POST_ITEMS_MAX) return { kind: "too_many", message: `the body has more than ${POST_ITEMS_MAX} items` };
  return undefined;
}

function itemsOfValue(bytes: Buffer): PostItems {
  const parsed = parse(bytes);
  if ("message" in parsed) return { kind: "malformed", message: parsed.message };
  const values = Array.isArray(parsed.value) ? parsed.value : [parsed.value];
  const sizeBytes = Math.ceil(bytes.length / Math.max(1, values.length));
  return (
    sizeFault(values.length) ?? { kind: "items", items: values.map((value) => ({ kind: "value", value, sizeBytes })) }
  );
}

async function valuesOf(pieces: readonly Buffer[], itemBytesMax: number): Promise<PostItem[]> {
  const items: PostItem[] = [];
  let sinceTurn = 0;
  for (const bytes of pieces) {
    items.push(valueOf(bytes, itemBytesMax));
    sinceTurn += bytes.length;
    if (sinceTurn < TURN_BYTES) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  return items;
}

function valueOf(bytes: Buffer, itemBytesMax: number): PostItem {
  if (bytes.length > itemBytesMax) {
    const message = `the item is longer than ${itemBytesMax} bytes; send a list within it in parts`;
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
    // Removes the excerpt from the message: the refusal's sample shows it already, with secrets redacted.
    return { message: (error as SyntaxError).message.replace(/, (?:\.\.\.)?".*$/s, "") };
  }
}

/** Lines that are not empty; stops after the limit, since one more line refuses the body. */
function nonEmptyLines(bytes: Buffer): Buffer[] {
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
