import { oneLine } from "../lib/text.ts";

// HTML that escapes by construction: `markup` is the only way to make markup, and it takes any other value as text.

/** A text on a page is cut to this. */
const TEXT_CHARACTERS_MAX = 500;

/** Only `markup` makes it: its text is safe. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type { Markup };
export type MarkupPart = Markup | string | number | readonly MarkupPart[];

/**
 * The template is markup; what is inserted into it is text on one line, or the result of this function. It is not
 * called `html`, because formatters would change the white space in it.
 */
export function markup(template: TemplateStringsArray, ...parts: readonly MarkupPart[]): Markup {
  return new Markup(template.map((text, i) => text + (i < parts.length ? written(parts[i]!) : "")).join(""));
}

function written(part: MarkupPart): string {
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(written).join("");
  return escape(oneLine(String(part), TEXT_CHARACTERS_MAX));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"'`]/g, (character) => ENTITIES[character]!);
}
