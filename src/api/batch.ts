import { isUtf8 } from "node:buffer";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { BATCH_ITEMS_MAX, type SubmissionItem } from "../intake/intake.ts";
import { mayHoldLarge, parseExact, sentValue } from "../lib/exact-json.ts";
import type { Fault } from "../lib/fault.ts";
import { unreachable } from "../lib/unreachable.ts";
import {
  findFaults,
  isDeeperThan,
  isTextDeeperThan,
  parseJson,
  piecesOf,
  rewrite,
  withoutByteOrderMark,
} from "../lib/json.ts";
import { JSON_TYPE, type Body } from "./body.ts";
import { invalid, Problem } from "./problems.ts";

// The submissions of a batch, each with its own faults, for JSON arrays and for JSON lines.

/** A larger array is parsed element by element and yields to other requests in between. */
export const ARRAY_PARSE_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes parsed between two yields. */
const YIELD_BYTES = 256 * 1024;

/** Nesting levels of a submission above its `data`. */
export const LEVELS_AROUND_DATA = 1;

export interface BatchRules {
  /** The maximum nesting of objects and arrays in the data of one submission. */
  readonly depthMax: number;
  readonly itemBytesMax: number;
}

/** The submissions of a batch, checked lazily one by one. Faults of the batch as a whole are thrown immediately. */
export async function batchItems(body: Body, rules: BatchRules): Promise<Iterable<SubmissionItem>> {
  const bytes = withoutByteOrderMark(body.bytes);
  if (body.type !== JSON_TYPE) return lineItems(bytes, rules);
  return bytes.length > ARRAY_PARSE_BYTES_MAX ? pieceItems(bytes, rules) : arrayItems(bytes, rules);
}

function lineItems(bytes: Buffer, rules: BatchRules): Iterable<SubmissionItem> {
  const lines = splitLines(bytes);
  requireItemCount(lines.length);
  return {
    *[Symbol.iterator]() {
      for (const { start, end } of lines) {
        if (end - start > rules.itemBytesMax) yield tooLarge(rules);
        else yield lineItem(bytes.subarray(start, end), rules);
      }
    },
  };
}

interface LineRange {
  readonly start: number;
  readonly end: number;
}

const NEWLINE = 0x0a;

/** The non-blank lines. Stops at one more than allowed, which is enough to refuse the batch. */
function splitLines(bytes: Buffer): LineRange[] {
  const lines: LineRange[] = [];
  for (let start = 0; start < bytes.length && lines.length <= BATCH_ITEMS_MAX;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    if (!isBlank(bytes, start, end)) lines.push({ start, end });
    start = end + 1;
  }
  return lines;
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  }
  return true;
}

function lineItem(bytes: Buffer, rules: BatchRules): SubmissionItem {
  return verbatimSubmission(bytes, rules) ?? strictItem(bytes, rules);
}

/** A submission whose text can be stored verbatim; undefined if it needs the strict parser. */
export function verbatimSubmission(bytes: Buffer, rules: Pick<BatchRules, "depthMax">): SubmissionItem | undefined {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : undefined;
  return text === undefined ? undefined : verbatimItem(text, parseOrUndefined(text), rules);
}

function strictItem(bytes: Buffer, rules: BatchRules): SubmissionItem {
  const sizeBytes = bytes.length;
  const result = parseJson(bytes, { depthMax: rules.depthMax, levelsAround: LEVELS_AROUND_DATA });
  switch (result.kind) {
    case "value":
      return { value: result.value, sizeBytes };
    case "faults":
      return { value: result.value, faults: result.faults, sizeBytes };
    case "malformed":
      return { faults: [{ field: "", message: `is not JSON: ${result.message}` }], sizeBytes };
    default:
      return unreachable(result);
  }
}

/** An item whose text is the compact JSON of its value, as most senders write it, so that parsing lost nothing. */
function verbatimItem(
  line: string,
  value: unknown,
  { depthMax }: Pick<BatchRules, "depthMax">,
): SubmissionItem | undefined {
  if (value === undefined || line.includes("\\ud")) return undefined;
  if (isTextDeeperThan(line, value, depthMax + LEVELS_AROUND_DATA)) return undefined;
  const { text, memberText } = rewrite(value, "data");
  return text === line ? { value: exactValue(line, value), dataText: memberText, sizeBytes: line.length } : undefined;
}

/** Parses integers beyond 2^53 exactly, even if their double happens to print the same digits. */
function exactValue(text: string, value: unknown): unknown {
  return mayHoldLarge(text) ? parseExact(text) : value;
}

function isTooDeep(submission: unknown, { depthMax }: BatchRules): boolean {
  return isDeeperThan(submission, depthMax + LEVELS_AROUND_DATA);
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The strict parser runs next and reports the fault.
    return undefined;
  }
}

/** Parses the elements of a large array before anything is stored. An element past the size limit is not parsed. */
async function pieceItems(bytes: Buffer, rules: BatchRules): Promise<Iterable<SubmissionItem>> {
  if (!isUtf8(bytes)) throw malformed("the text is not valid UTF-8");
  const pieces = piecesOf(bytes, BATCH_ITEMS_MAX);
  if (!pieces) throw notAnArray();
  if ("message" in pieces) throw malformed(pieces.message);
  requireItemCount(pieces.length);
  let sinceYield = 0;
  for (const [index, piece] of pieces.entries()) {
    // The value is not kept: many small values take many times the memory of their text. It is parsed again in its turn.
    if (piece.length <= rules.itemBytesMax) parsePiece(piece, index);
    sinceYield += piece.length;
    if (sinceYield < YIELD_BYTES) continue;
    sinceYield = 0;
    await yieldToOthers();
  }
  return {
    *[Symbol.iterator]() {
      for (const piece of pieces) {
        if (piece.length > rules.itemBytesMax) yield tooLarge(rules);
        else yield lineItem(piece, rules);
      }
    },
  };
}

function arrayItems(bytes: Buffer, rules: BatchRules): Iterable<SubmissionItem> {
  if (!isUtf8(bytes)) throw malformed("the text is not valid UTF-8");
  const text = bytes.toString("utf8");
  const elements = parseArray(text);
  requireItemCount(elements.length);
  return text.includes("\\ud") ? strictItems(bytes, elements, 0, rules) : verbatimItems(bytes, text, elements, rules);
}

function parseArray(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed((error as SyntaxError).message);
  }
  if (!Array.isArray(value)) throw notAnArray();
  return value;
}

function parsePiece(piece: Buffer, index: number): unknown {
  try {
    return JSON.parse(piece.toString("utf8"));
  } catch (error) {
    throw malformed(`at [${index}]: ${(error as SyntaxError).message}`);
  }
}

function notAnArray(): Problem {
  return invalid([{ field: "body", message: "must be an array of submissions" }]);
}

function malformed(message: string): Problem {
  return new Problem("malformed_json", `the body is not JSON: ${message}`);
}

/**
 * Verbatim items of an array: the text of each element must be exactly where compact JSON would put it. From the first
 * element that differs, the strict parser takes over. Elements are released as they are yielded, because a batch may wait
 * for the disk for a long time.
 */
function* verbatimItems(
  bytes: Buffer,
  text: string,
  elements: unknown[],
  rules: BatchRules,
): Generator<SubmissionItem> {
  let at = 1;
  for (let index = 0; index < elements.length; index++) {
    const value = elements[index];
    const written = isTooDeep(value, rules) ? undefined : rewrite(value, "data");
    const end = at + (written?.text.length ?? 0);
    // A comma follows each element and the closing bracket the last; white space would shift the rest.
    const mark = index === elements.length - 1 ? "]" : ",";
    if (!written || !text.startsWith(written.text, at) || text[end] !== mark) {
      yield* strictItems(bytes, elements, index, rules);
      return;
    }
    at = end + 1;
    elements[index] = undefined;
    if (isLargerThan(written.text, rules.itemBytesMax)) yield tooLarge(rules);
    else yield { value: exactValue(written.text, value), dataText: written.memberText, sizeBytes: written.text.length };
  }
}

function* strictItems(bytes: Buffer, parsed: unknown[], from: number, rules: BatchRules): Generator<SubmissionItem> {
  const text = bytes.toString("utf8");
  // Exact numbers take longer to parse, so only batches that contain some use that path.
  if (mayHoldLarge(text)) {
    const pieces = piecesOf(bytes, BATCH_ITEMS_MAX) as Buffer[];
    for (const piece of pieces.slice(from)) {
      yield piece.length > rules.itemBytesMax ? tooLarge(rules) : lineItem(piece, rules);
    }
    return;
  }
  const elements = sentValue(text, parsed) as unknown[];
  const faults = faultsByIndex(findFaults(text, { depthMax: rules.depthMax, levelsAround: LEVELS_AROUND_DATA + 1 }));
  const mayBeTooLarge = isLargerThan(text, rules.itemBytesMax);
  for (let index = from; index < elements.length; index++) {
    const value = elements[index];
    elements[index] = undefined;
    const own = faults.get(index);
    const sizeBytes = mayBeTooLarge ? estimateBytes(value, rules.itemBytesMax) : 0;
    if (own) yield { value, faults: own, sizeBytes };
    else yield sizeBytes > rules.itemBytesMax ? tooLarge(rules) : { value, sizeBytes };
  }
}

const UTF8_BYTES_MAX = 3;

function isLargerThan(text: string, bytesMax: number): boolean {
  return text.length * UTF8_BYTES_MAX > bytesMax && Buffer.byteLength(text) > bytesMax;
}

/** `[3].data.x` is a fault of the fourth submission at `data.x`. */
function faultsByIndex(faults: readonly Fault[]): Map<number, Fault[]> {
  const byIndex = new Map<number, Fault[]>();
  for (const { field, message } of faults) {
    const close = field.indexOf("]");
    const index = Number(field.slice(1, close));
    const own = byIndex.get(index) ?? [];
    own.push({ field: field.slice(close + 1).replace(/^\./, ""), message });
    byIndex.set(index, own);
  }
  return byIndex;
}

/** Estimates the JSON size of a value. Stops counting past the limit. */
function estimateBytes(value: unknown, max: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let size = 2;
  for (const key in value) {
    size +=
      (Array.isArray(value) ? 1 : key.length + 4) + estimateBytes((value as Record<string, unknown>)[key], max - size);
    if (size > max) break;
  }
  return size;
}

function tooLarge({ itemBytesMax }: BatchRules): SubmissionItem {
  return { faults: [{ field: "", message: `is larger than ${itemBytesMax} bytes` }] };
}

function requireItemCount(items: number): void {
  if (items === 0) throw invalid([{ field: "body", message: "contains no submissions" }]);
  if (items > BATCH_ITEMS_MAX) {
    throw invalid([{ field: "body", message: `contains more than ${BATCH_ITEMS_MAX} submissions` }]);
  }
}
