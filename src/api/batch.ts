import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BATCH_ITEMS_MAX, type Item } from "../intake/intake.ts";
import { mayHoldLarge, parseExact, sentValue } from "../lib/exact-json.ts";
import type { Fault } from "../lib/fault.ts";
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

// A batch's submissions, each with its own faults, whichever way the batch is written.

/** An array that is larger is parsed piece by piece: however many values it has, others get their turn in between. */
export const ARRAY_AT_ONCE_BYTES_MAX = 4 * 1024 * 1024;
/** So much of it is parsed in one turn. */
const TURN_BYTES = 256 * 1024;

/** The body of a submission holds `data` one level down. */
export const LEVELS_AROUND_DATA = 1;

export interface BatchRules {
  /** Levels of objects and arrays in the data of one submission. */
  readonly depthMax: number;
  readonly itemBytesMax: number;
}

/** The submissions of a batch, each looked at when it is asked for; what is wrong with the whole is thrown at once. */
export async function batchItems(body: Body, rules: BatchRules): Promise<Iterable<Item>> {
  const bytes = withoutByteOrderMark(body.bytes);
  if (body.type !== JSON_TYPE) return itemsOfLines(bytes, rules);
  return bytes.length > ARRAY_AT_ONCE_BYTES_MAX ? itemsOfPieces(bytes, rules) : itemsOfArray(bytes, rules);
}

function itemsOfLines(bytes: Buffer, rules: BatchRules): Iterable<Item> {
  const lines = splitLines(bytes);
  requireSize(lines.length);
  return {
    *[Symbol.iterator]() {
      for (const { start, end } of lines) {
        if (end - start > rules.itemBytesMax) yield tooLarge(rules);
        else yield itemOfLine(bytes.subarray(start, end), rules);
      }
    },
  };
}

interface Line {
  readonly start: number;
  readonly end: number;
}

const NEWLINE = 0x0a;

/** The lines that have something on them; one more than allowed is enough to refuse them all. */
function splitLines(bytes: Buffer): Line[] {
  const lines: Line[] = [];
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

function itemOfLine(bytes: Buffer, rules: BatchRules): Item {
  return wholeSubmission(bytes, rules) ?? strictItem(bytes, rules);
}

/** A submission whose text can be kept as it is; undefined where it has to be looked at more closely. */
export function wholeSubmission(bytes: Buffer, rules: Pick<BatchRules, "depthMax">): Item | undefined {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : undefined;
  return text === undefined ? undefined : wholeItem(text, parseOrUndefined(text), rules);
}

function strictItem(bytes: Buffer, rules: BatchRules): Item {
  const sizeBytes = bytes.length;
  const result = parseJson(bytes, { depthMax: rules.depthMax, levelsAround: LEVELS_AROUND_DATA });
  switch (result.kind) {
    case "value":
      return { value: result.value, sizeBytes };
    case "faults":
      return { value: result.value, faults: result.faults, sizeBytes };
    case "malformed":
      return { faults: [{ field: "", message: `is not JSON: ${result.message}` }], sizeBytes };
  }
}

/** A line that is the compact JSON of what it says, as most senders write it: nothing in it can have been lost. */
function wholeItem(line: string, value: unknown, { depthMax }: Pick<BatchRules, "depthMax">): Item | undefined {
  if (value === undefined || line.includes("\\ud")) return undefined;
  if (isTextDeeperThan(line, value, depthMax + LEVELS_AROUND_DATA)) return undefined;
  const { text, memberText } = rewrite(value, "data");
  return text === line ? { value: exactValue(line, value), dataText: memberText, sizeBytes: line.length } : undefined;
}

/** A double beyond 2^53 may come back out as it was written, and is a whole number nevertheless. */
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
    // The strict parser, which comes next, says what is wrong.
    return undefined;
  }
}

/** What is no JSON is found before anything is stored. A piece that is too large is not even parsed. */
async function itemsOfPieces(bytes: Buffer, rules: BatchRules): Promise<Iterable<Item>> {
  if (!isUtf8(bytes)) throw malformed("the text is not valid UTF-8");
  const pieces = piecesOf(bytes, BATCH_ITEMS_MAX);
  if (!pieces) throw noArray();
  if ("message" in pieces) throw malformed(pieces.message);
  requireSize(pieces.length);
  const values: unknown[] = [];
  let sinceTurn = 0;
  for (const [index, piece] of pieces.entries()) {
    values.push(piece.length > rules.itemBytesMax ? undefined : parsePiece(piece, index));
    sinceTurn += piece.length;
    if (sinceTurn < TURN_BYTES) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  return {
    *[Symbol.iterator]() {
      for (const [index, piece] of pieces.entries()) {
        const value = values[index];
        values[index] = undefined;
        if (piece.length > rules.itemBytesMax) yield tooLarge(rules);
        else yield wholeItem(piece.toString("utf8"), value, rules) ?? strictItem(piece, rules);
      }
    },
  };
}

function itemsOfArray(bytes: Buffer, rules: BatchRules): Iterable<Item> {
  if (!isUtf8(bytes)) throw malformed("the text is not valid UTF-8");
  const text = bytes.toString("utf8");
  const elements = parseArray(text);
  requireSize(elements.length);
  return text.includes("\\ud") ? strictItems(bytes, elements, 0, rules) : wholeItems(bytes, text, elements, rules);
}

function parseArray(text: string): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed((error as SyntaxError).message);
  }
  if (!Array.isArray(value)) throw noArray();
  return value;
}

function parsePiece(piece: Buffer, index: number): unknown {
  try {
    return JSON.parse(piece.toString("utf8"));
  } catch (error) {
    throw malformed(`at [${index}]: ${(error as SyntaxError).message}`);
  }
}

function noArray(): Problem {
  return invalid([{ field: "body", message: "must be an array of submissions" }]);
}

function malformed(message: string): Problem {
  return new Problem("malformed_json", `the body is not JSON: ${message}`);
}

/**
 * The same for an array: each element's text must stand where it would be written. From the first that does not, the
 * strict way. Each element is given away and not kept: a batch waits for the disk, what was parsed need not.
 */
function* wholeItems(bytes: Buffer, text: string, elements: unknown[], rules: BatchRules): Generator<Item> {
  let at = 1;
  for (let index = 0; index < elements.length; index++) {
    const value = elements[index];
    const whole = isTooDeep(value, rules) ? undefined : rewrite(value, "data");
    const end = at + (whole?.text.length ?? 0);
    // One comma between elements, the closing bracket after the last: white space shifts what comes next.
    const mark = index === elements.length - 1 ? "]" : ",";
    if (!whole || !text.startsWith(whole.text, at) || text[end] !== mark) {
      yield* strictItems(bytes, elements, index, rules);
      return;
    }
    at = end + 1;
    elements[index] = undefined;
    if (isLonger(whole.text, rules.itemBytesMax)) yield tooLarge(rules);
    else yield { value: exactValue(whole.text, value), dataText: whole.memberText, sizeBytes: whole.text.length };
  }
}

function* strictItems(bytes: Buffer, parsed: unknown[], from: number, rules: BatchRules): Generator<Item> {
  const text = bytes.toString("utf8");
  // Exact numbers take longer to read: only submissions that have some pay for it.
  if (mayHoldLarge(text)) {
    const pieces = piecesOf(bytes, BATCH_ITEMS_MAX) as Buffer[];
    for (const piece of pieces.slice(from)) {
      yield piece.length > rules.itemBytesMax ? tooLarge(rules) : itemOfLine(piece, rules);
    }
    return;
  }
  const elements = sentValue(text, parsed) as unknown[];
  const faults = faultsByIndex(findFaults(text, { depthMax: rules.depthMax, levelsAround: LEVELS_AROUND_DATA + 1 }));
  const mayBeTooLarge = isLonger(text, rules.itemBytesMax);
  for (let index = from; index < elements.length; index++) {
    const value = elements[index];
    elements[index] = undefined;
    const own = faults.get(index);
    const sizeBytes = mayBeTooLarge ? weigh(value, rules.itemBytesMax) : 0;
    if (own) yield { value, faults: own, sizeBytes };
    else yield sizeBytes > rules.itemBytesMax ? tooLarge(rules) : { value, sizeBytes };
  }
}

const UTF8_BYTES_MAX = 3;

function isLonger(text: string, bytesMax: number): boolean {
  return text.length * UTF8_BYTES_MAX > bytesMax && Buffer.byteLength(text) > bytesMax;
}

/** `[3].data.x` is a fault of the fourth submission, at `data.x`. */
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

/** About how many bytes a value takes as JSON; stops counting once it is more than the limit. */
function weigh(value: unknown, max: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let weight = 2;
  for (const key in value) {
    weight +=
      (Array.isArray(value) ? 1 : key.length + 4) + weigh((value as Record<string, unknown>)[key], max - weight);
    if (weight > max) break;
  }
  return weight;
}

function tooLarge({ itemBytesMax }: BatchRules): Item {
  return { faults: [{ field: "", message: `is larger than ${itemBytesMax} bytes` }] };
}

function requireSize(items: number): void {
  if (items === 0) throw invalid([{ field: "body", message: "has no submissions" }]);
  if (items > BATCH_ITEMS_MAX) {
    throw invalid([{ field: "body", message: `has more than ${BATCH_ITEMS_MAX} submissions` }]);
  }
}
