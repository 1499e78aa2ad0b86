import { isAscii, isUtf8 } from "node:buffer";
import type { Reading } from "../formats/reading.ts";
import { redactSecretsInText } from "../formats/redact-secrets.ts";

// Decodes the bytes of a line. Old devices send text that is not UTF-8: it is read, with U+FFFD in place of each invalid
// byte. Binary data is refused.

/** Text has at least this many characters for each control character. */
const TEXT_PER_CONTROL_MIN = 10;
/** Text has at least this many characters for each invalid byte; binary data has about two. */
const TEXT_PER_REPLACED_MIN = 3;
const SAMPLE_CHARACTERS_MAX = 200;
const REPLACEMENT = 0xfffd;
const CONTROL = /\p{Cc}/u;
/** Tab, line feed, form feed, carriage return and escape (colours), which occur in ordinary text. */
const USUAL_CONTROLS = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);
const DELETE = 0x7f;

export interface LineText {
  readonly text: string;
  /** True if bytes that are not UTF-8 were replaced. */
  readonly isReplaced: boolean;
}

/** Decodes a line; undefined if it is not text. */
export function decodeLine(bytes: Buffer): LineText | undefined {
  const text = bytes.toString(isAscii(bytes) ? "latin1" : "utf8");
  const isReplaced = !isUtf8(bytes);
  if (!isReplaced && !CONTROL.test(text)) return { text, isReplaced };
  const controls = countOf(text, (code) => (code < 0x20 && !USUAL_CONTROLS.has(code)) || code === DELETE);
  const replaced = isReplaced ? countOf(text, (code) => code === REPLACEMENT) : 0;
  const isText =
    controls * TEXT_PER_CONTROL_MIN <= text.length &&
    replaced * TEXT_PER_REPLACED_MIN <= text.length &&
    !(controls > 0 && replaced > 0);
  return isText ? { text, isReplaced } : undefined;
}

/** Marks the events of a line in which bytes were replaced. */
export function markReplaced(reading: Reading, { isReplaced }: LineText): Reading {
  if (!isReplaced || reading.kind !== "events") return reading;
  const events = reading.events.map((event) => ({ ...event, raw: { ...event.raw, replaced_bytes: true } }));
  return { ...reading, events };
}

/** The start of a text, without a reference to the rest: a slice would keep all of it in memory. */
export function startOf(text: string): string {
  if (text.length <= SAMPLE_CHARACTERS_MAX) return text;
  return Buffer.from(text.slice(0, SAMPLE_CHARACTERS_MAX), "utf16le").toString("utf16le");
}

/** Start of input, fit for display: control characters replaced, secrets redacted. */
export function sampleOf(given: Uint8Array | string): string {
  const text =
    typeof given === "string"
      ? given.slice(0, SAMPLE_CHARACTERS_MAX)
      : Buffer.from(given.subarray(0, 4 * SAMPLE_CHARACTERS_MAX))
          .toString("utf8")
          .slice(0, SAMPLE_CHARACTERS_MAX);
  return redactSecretsInText(text.toWellFormed().replaceAll(/\p{Cc}/gu, "·"));
}

function countOf(text: string, is: (code: number) => boolean): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (is(text.charCodeAt(at))) count++;
  return count;
}
