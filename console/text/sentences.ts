import { ENTITY_FIELDS, ENTITY_KINDS, type Entity, type EntityKind } from "../components/entities/entity.ts";
import type { Event } from "../data/client.ts";
import { SENTENCES } from "./sentence-templates.ts";

// An event in words. The things that it names are parts of their own, so that each can be a link.

export type SentencePart = string | Entity;

type Raw = Readonly<Record<string, unknown>>;

const KIND_OF_FIELD: ReadonlyMap<string, EntityKind> = new Map(
  ENTITY_KINDS.flatMap((kind) => ENTITY_FIELDS[kind].map((field) => [field, kind] as const)),
);

/** Where the event does not say. */
const UNKNOWN: Readonly<Record<string, string>> = {
  user: "somebody",
  door: "a door",
  camera: "a camera",
  src_ip: "an unknown address",
  dst_ip: "an unknown address",
  host: "a device",
  device: "a device",
  from: "a telephone",
  to: "a telephone",
};

const VALUE_CHARACTERS_MAX = 200;
const NAMELESS = new Set(["", "unknown", "-", "n/a", "none", "null"]);

function textOf(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
  const text = String(value);
  if (NAMELESS.has(text.trim().toLowerCase())) return undefined;
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
}

/** Words that depend on a value rather than repeat it. */
const WORDINGS: Readonly<Record<string, (raw: Raw) => string>> = {
  count: ({ count }) => (typeof count === "number" && count > 1 ? `${count} people` : "A person"),
  known: ({ known }) => (known === false ? "Unknown device" : "Device"),
};

function fieldPart(names: readonly string[], raw: Raw): SentencePart | undefined {
  for (const name of names) {
    const wording = WORDINGS[name];
    if (wording !== undefined) return wording(raw);
    const text = textOf(raw[name]);
    if (text === undefined) continue;
    const kind = KIND_OF_FIELD.get(name);
    return kind === undefined || typeof raw[name] !== "string" ? text : { kind, value: text };
  }
  return undefined;
}

const PIECE = /\[([^\]]*)\]|\{([^}]*)\}|([^[{]+)/g;

function fill(template: string, raw: Raw): { parts: SentencePart[]; isComplete: boolean } {
  const parts: SentencePart[] = [];
  let isComplete = true;
  for (const [, optional, names, words] of template.matchAll(PIECE)) {
    if (words !== undefined) parts.push(words);
    else if (optional !== undefined) {
      const inner = fill(optional, raw);
      if (inner.isComplete) parts.push(...inner.parts);
    } else {
      const fields = names!.split("|");
      const part = fieldPart(fields, raw);
      isComplete &&= part !== undefined;
      parts.push(part ?? UNKNOWN[fields[0]!] ?? "something");
    }
  }
  return { parts, isComplete };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The event as a sentence. */
export function sentenceOf(event: Pick<Event, "type" | "raw">): SentencePart[] {
  // A sender chooses the type: `constructor` is not a sentence.
  if (Object.hasOwn(SENTENCES, event.type)) {
    const { parts } = fill(SENTENCES[event.type]!, event.raw);
    return typeof parts[0] === "string" ? [capital(parts[0]), ...parts.slice(1)] : parts;
  }
  const words = capital(event.type.replaceAll(/[_.-]+/g, " "));
  const message = textOf(event.raw["message"]);
  if (message !== undefined) return [`${words}: ${message}`];
  const about = fieldPart(["user", "host", "device", "door", "camera", "src_ip"], event.raw);
  return about === undefined ? [words] : [`${words}: `, about];
}

export const sentenceText = (event: Pick<Event, "type" | "raw">) =>
  sentenceOf(event)
    .map((part) => (typeof part === "string" ? part : part.value))
    .join("");
