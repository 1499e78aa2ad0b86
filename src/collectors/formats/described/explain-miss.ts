import type { LineMessage } from "../line-format.ts";
import { scannerOf, type DeviceValues } from "./scan-values.ts";
import type { EventDescription, FormatDescription } from "./description.ts";
import { kindOfName } from "./field-values.ts";
import { Template } from "./template.ts";

// Says why a description does not read a message, for its author. The reader itself is in described-format.ts.

const EVENTS_EXPLAINED_MAX = 3;
const TEXT_CHARACTERS_MAX = 40;

/** Reasons, the likeliest first. */
export function explainMiss(description: FormatDescription, { program, message, whole }: LineMessage): string[] {
  const { match, header, events } = description;
  const text = match.programs === undefined ? whole : message;
  if (match.programs !== undefined && (program === null || !match.programs.includes(program))) {
    const is = program === null ? "the line names no program" : `the program is ${program}`;
    return [`${is}; match.programs has ${match.programs.join(", ")}`];
  }
  if (match.begins !== undefined && !match.begins.some((start) => text.startsWith(start))) {
    return [`the message begins with ${quoted(text)}; match.begins has ${listed(match.begins)}`];
  }
  const missing = match.contains?.find((part) => !text.includes(part));
  if (missing !== undefined) return [`the message does not contain ${quoted(missing)} of match.contains`];
  let start = 0;
  const headers = [header ?? []].flat().map((source) => new Template(source, kindOfName));
  if (headers.length > 0) {
    const matching = headers.find((template) => template.match(text, 0, []) >= 0);
    if (matching === undefined) return headers.map((template) => `header: ${template.explain(text, 0)!.words}`);
    start = matching.match(text, 0, []);
  }
  const scanned = scannerOf(description)(text, start, new Map());
  if (scanned === undefined) return ["the message is not a JSON object"];
  const missed = events
    .map((event, index) => explainEvent(event, index, text, start, scanned.values))
    .sort((a, b) => b.reached - a.reached);
  const shown = missed.slice(0, EVENTS_EXPLAINED_MAX).map(({ words }) => words);
  return missed.length > shown.length ? [...shown, `and ${missed.length - shown.length} more events`] : shown;
}

/** `reached`: how much of the message a pattern has matched. */
function explainEvent(
  { pattern, when }: EventDescription,
  index: number,
  text: string,
  start: number,
  values: DeviceValues,
) {
  const place = `events[${index}]`;
  if (pattern === undefined) return { reached: 0, words: `${place}: ${valuesOf(when, values)}` };
  const misses = pattern.map((source) => new Template(source, kindOfName).explain(text, start));
  if (!misses.includes(undefined)) {
    const best = misses.reduce((a, b) => (b!.reached > a!.reached ? b : a))!;
    return { reached: best.reached, words: `${place}.pattern: ${best.words}` };
  }
  const reason = when === undefined ? "a value does not fit the type of its field" : valuesOf(when, values);
  return { reached: text.length, words: `${place}: its pattern matches, but ${reason}` };
}

/** The values that `when` asks for. */
function valuesOf(when: EventDescription["when"], values: DeviceValues): string {
  const is = Object.keys(when ?? {}).map((name) => {
    const value = values.get(name);
    return `${name} ${value === undefined ? "is absent" : `is ${quoted(value)}`}`;
  });
  return is.length === 0
    ? "a value does not fit the type of its field"
    : `when asks for something else: ${is.join(", ")}`;
}

const listed = (words: readonly string[]) => words.slice(0, 5).map(quoted).join(", ");

function quoted(text: string): string {
  return JSON.stringify(text.length > TEXT_CHARACTERS_MAX ? `${text.slice(0, TEXT_CHARACTERS_MAX - 1)}…` : text);
}
