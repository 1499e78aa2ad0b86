import type { JsonObject } from "../../model/event.ts";
import { sampleOf, startOf } from "./line-text.ts";

// Lines of one sender that no format understood, with samples of different kinds, so that somebody can teach a format for them.

const SAMPLES_MAX = 5;
const SHAPE_CHARACTERS_MAX = 32;

/** A kind of lines that no format understood. */
export interface UnparsedSample {
  /** The start of the newest such line, fit for display. */
  readonly text: string;
  /** Program that wrote it; null if the line names none. */
  readonly program: string | null;
  readonly atMs: number;
  /** Lines that begin alike, since the sample was taken in. */
  readonly lines: number;
}

interface HeldSample {
  text: string;
  readonly program: string | null;
  atMs: number;
  lines: number;
}

export class UnparsedSamples {
  readonly #byShape = new Map<string, HeldSample>();

  add(raw: JsonObject, atMs: number): void {
    const text = String(raw["line"]);
    const program = typeof raw["program"] === "string" ? startOf(raw["program"]) : null;
    const shape = `${program ?? ""} ${shapeOf(typeof raw["message"] === "string" ? raw["message"] : text)}`;
    const held = this.#byShape.get(shape);
    if (held !== undefined) {
      held.text = startOf(text);
      held.atMs = atMs;
      held.lines++;
      return;
    }
    if (this.#byShape.size >= SAMPLES_MAX) this.#byShape.delete(this.#rarest());
    this.#byShape.set(shape, { text: startOf(text), program, atMs, lines: 1 });
  }

  /** The most frequent first. */
  list(): UnparsedSample[] {
    return [...this.#byShape.values()]
      .sort((a, b) => b.lines - a.lines || b.atMs - a.atMs)
      .map(({ text, program, atMs, lines }) => ({
        text: sampleOf(text),
        program: program && sampleOf(program),
        atMs,
        lines,
      }));
  }

  #rarest(): string {
    let rarest: readonly [string, HeldSample] | undefined;
    for (const entry of this.#byShape) if (rarest === undefined || entry[1].lines < rarest[1].lines) rarest = entry;
    return rarest![0];
  }
}

/** The start of a message without its numbers, which differ in lines of one kind. */
function shapeOf(message: string): string {
  return message.slice(0, SHAPE_CHARACTERS_MAX).replaceAll(/[\d.:]+/g, "0");
}
