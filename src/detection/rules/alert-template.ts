import { fieldReader, OBJECT, pathFault, type FieldValue } from "../../model/field.ts";
import type { Event } from "../../model/event.ts";
import { PLACE_PATHS_MAX } from "../../model/rule-faults.ts";

// Templates for titles and descriptions of alerts: `Failed logins from {{raw.src_ip}}`. A placeholder holds one path, or
// several separated by bars. Values of an event are plain text and never expanded again.

const VALUES_MAX = 5;
const VALUE_CHARACTERS_MAX = 200;
const MISSING = "(none)";
const PATH = "[^{}\\s|]{1,512}";
const PLACEHOLDER = new RegExp(`\\{\\{\\s*(${PATH}(?:\\s*\\|\\s*${PATH}){0,${PLACE_PATHS_MAX - 1}})\\s*\\}\\}`, "g");
const BLANKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;
/** Control characters and bidirectional formatting, except the joiners that some scripts need. */
const INVISIBLE = /\p{Cc}|(?![\u200c\u200d])\p{Cf}/gu;

export type ReadField = (path: string) => readonly FieldValue[];

export function readFieldsOf(event: Event): ReadField {
  return (path) => (pathFault(path) === undefined ? fieldReader(path)(event) : []);
}

export function renderTemplate(template: string, read: ReadField, charactersMax: number): string {
  const rendered = template.replaceAll(PLACEHOLDER, (_, paths: string) => firstText(paths, read));
  return cut(rendered, charactersMax);
}

/** The text of the first path with a value, since devices use different fields. */
function firstText(paths: string, read: ReadField): string {
  for (const path of pathsOf(paths)) {
    const text = joinValues(read(path));
    if (text !== "") return text;
  }
  return MISSING;
}

function pathsOf(text: string): string[] {
  return text.split("|").map((path) => path.trim());
}

/** The paths of a template in order, and malformed placeholders, which are shown verbatim. */
export function readTemplate(template: string): { readonly paths: string[]; readonly unread: string[] } {
  const paths = [...template.matchAll(PLACEHOLDER)].flatMap(([, text]) => pathsOf(text!));
  const unread = template.replaceAll(PLACEHOLDER, " ").match(/\{\{(?:[^{}]*\}\})?/g) ?? [];
  return { paths, unread };
}

function joinValues(values: readonly FieldValue[]): string {
  const texts = values.filter((value) => value !== OBJECT).map((value) => plainText(String(value)));
  const distinct = [...new Set(texts)].filter((text) => text !== "").slice(0, VALUES_MAX);
  return distinct.join(", ");
}

/** A value as single-line display text. */
export function plainText(value: string): string {
  const start = value.length > VALUE_CHARACTERS_MAX * 2 ? value.slice(0, VALUE_CHARACTERS_MAX * 2) : value;
  return cut(start.replaceAll(BLANKS, " ").replaceAll(INVISIBLE, "").toWellFormed(), VALUE_CHARACTERS_MAX);
}

function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  // Do not split a surrogate pair.
  const isSplit = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return `${text.slice(0, isSplit ? end - 1 : end)}…`;
}
