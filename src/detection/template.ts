import { fieldReader, OBJECT, pathFault, type FieldValue } from "../model/field.ts";
import type { Event } from "../model/event.ts";
import { PLACE_PATHS_MAX } from "../model/rule-faults.ts";

// Titles and descriptions of alerts: `Failed logins from {{raw.src_ip}}`. What stands between the braces is a path, or several
// with bars between them, and nothing else; what an event says is text, and is never looked at for braces.

const VALUES_MAX = 5;
const VALUE_CHARACTERS_MAX = 200;
const MISSING = "(none)";
const PATH = "[^{}\\s|]{1,512}";
const PLACE = new RegExp(`\\{\\{\\s*(${PATH}(?:\\s*\\|\\s*${PATH}){0,${PLACE_PATHS_MAX - 1}})\\s*\\}\\}`, "g");
const BLANKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g;
/** Control characters, and what turns the direction of the text around it; but the joiners that some scripts need stay. */
const UNSEEN = /\p{Cc}|(?![\u200c\u200d])\p{Cf}/gu;

export type ReadField = (path: string) => readonly FieldValue[];

export function readsEvent(event: Event): ReadField {
  return (path) => (pathFault(path) === undefined ? fieldReader(path)(event) : []);
}

export function fillTemplate(template: string, read: ReadField, charactersMax: number): string {
  const filled = template.replaceAll(PLACE, (_, paths: string) => spellFirst(paths, read));
  return cut(filled, charactersMax);
}

/** Devices name what they tell of in different fields: the first path that there is something at counts. */
function spellFirst(paths: string, read: ReadField): string {
  for (const path of placePaths(paths)) {
    const text = spell(read(path));
    if (text !== "") return text;
  }
  return MISSING;
}

function placePaths(text: string): string[] {
  return text.split("|").map((path) => path.trim());
}

/** What a template asks for, in its order, and what in it looks like a place and is shown as it stands. */
export function readTemplate(template: string): { readonly paths: string[]; readonly unread: string[] } {
  const paths = [...template.matchAll(PLACE)].flatMap(([, text]) => placePaths(text!));
  const unread = template.replaceAll(PLACE, " ").match(/\{\{(?:[^{}]*\}\})?/g) ?? [];
  return { paths, unread };
}

function spell(values: readonly FieldValue[]): string {
  const texts = values.filter((value) => value !== OBJECT).map((value) => plainText(String(value)));
  const different = [...new Set(texts)].filter((text) => text !== "").slice(0, VALUES_MAX);
  return different.join(", ");
}

/** One value as a person may see it. */
export function plainText(value: string): string {
  const start = value.length > VALUE_CHARACTERS_MAX * 2 ? value.slice(0, VALUE_CHARACTERS_MAX * 2) : value;
  return cut(start.replaceAll(BLANKS, " ").replaceAll(UNSEEN, "").toWellFormed(), VALUE_CHARACTERS_MAX);
}

function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  // Never through the middle of a character.
  const isSplit = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;
  return `${text.slice(0, isSplit ? end - 1 : end)}…`;
}
