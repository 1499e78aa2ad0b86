import { isAscii, isUtf8 } from "node:buffer";
import type { Reading } from "../reading.ts";
import { hideSecretsInText } from "../secrets.ts";

// From the bytes of a line to its text. Old devices send what is not UTF-8 and still is text: that is read, with a mark in
// place of each byte that has no meaning. What is no text at all is refused.

/** One byte in so many may be a control character; with more it is no text. */
const TEXT_PER_CONTROL_MIN = 10;
/** The same for bytes that are not UTF-8: a line in another alphabet is mostly of them, binary is about half. */
const TEXT_PER_REPLACED_MIN = 3;
const SAMPLE_CHARACTERS_MAX = 200;
const REPLACEMENT = 0xfffd;
const CONTROL = /\p{Cc}/u;
/** Tab, line feed, form feed, carriage return and escape (colours): what people's programs write. */
const USUAL_CONTROLS = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);
const DELETE = 0x7f;

export interface LineText {
  readonly text: string;
  /** Some bytes were not UTF-8 and have been replaced. */
  readonly isReplaced: boolean;
}

/** The text of a line; undefined where it is none. */
export function textOf(bytes: Buffer): LineText | undefined {
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

/** Events of a text with marks in it say so. */
export function markReplaced(reading: Reading, { isReplaced }: LineText): Reading {
  if (!isReplaced || reading.kind !== "events") return reading;
  const events = reading.events.map((event) => ({ ...event, raw: { ...event.raw, replaced_bytes: true } }));
  return { kind: "events", events };
}

/** The beginning of what was refused, fit to be shown: without what lets somebody in somewhere. */
export function sampleOf(given: Uint8Array | string): string {
  const text =
    typeof given === "string"
      ? given.slice(0, SAMPLE_CHARACTERS_MAX)
      : Buffer.from(given.subarray(0, 4 * SAMPLE_CHARACTERS_MAX))
          .toString("utf8")
          .slice(0, SAMPLE_CHARACTERS_MAX);
  return hideSecretsInText(text.toWellFormed().replaceAll(/\p{Cc}/gu, "·"));
}

function countOf(text: string, is: (code: number) => boolean): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (is(text.charCodeAt(at))) count++;
  return count;
}
