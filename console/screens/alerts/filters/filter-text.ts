import type { FilterName, FilterTexts } from "../address.ts";
import { ME, NOBODY } from "../address.ts";
import { ENTITY_KINDS, ENTITY_WORD, type EntityKind } from "../../../components/entities/entity.ts";
import { DOMAIN_WORD, domainOf } from "../../../text/domains.ts";

// Filters as people type and read them.

const TYPED: Readonly<Record<string, FilterName>> = {
  status: "status",
  severity: "severity",
  rule: "rule_name",
  rule_name: "rule_name",
  source: "source",
  assignee: "assignee",
  assigned: "assignee",
  tag: "tag",
  event: "event_id",
};

const TOKEN = /([a-z_]+):(?:"([^"]*)"|(\S*))/giu;

/** `severity:high door:"Loading dock" words` is two filters and a word. Names that mean nothing stay words. */
export function parseFilterText(text: string): FilterTexts {
  const filters: Partial<Record<FilterName, string>> = {};
  const words = text.replace(TOKEN, (token, name: string, quoted?: string, bare?: string) => {
    const value = (quoted ?? bare ?? "").trim();
    const lower = name.toLowerCase();
    const field = Object.hasOwn(TYPED, lower) ? TYPED[lower] : undefined;
    const kind = ENTITY_KINDS.find((each) => each === lower || ENTITY_WORD[each] === lower);
    if (value === "" || (field === undefined && kind === undefined)) return token;
    if (field === undefined) filters.entity = `${kind!}:${value}`;
    else filters[field] = filters[field] === undefined ? value : `${filters[field]},${value}`;
    return " ";
  });
  const search = words.trim().replaceAll(/\s+/g, " ");
  return search === "" ? filters : { ...filters, search };
}

const LABEL: Record<FilterName, string> = {
  status: "status",
  severity: "severity",
  rule_name: "rule",
  source: "from",
  assignee: "assigned to",
  entity: "about",
  tag: "tag",
  event_id: "event",
  search: "words",
  time: "time",
};

export interface Chip {
  readonly name: FilterName;
  readonly label: string;
  readonly value: string;
}

export function chipsOf(filters: FilterTexts): Chip[] {
  return (Object.keys(LABEL) as FilterName[]).flatMap((name) => {
    const text = filters[name];
    if (text === undefined) return [];
    const entity = name === "entity" ? splitEntity(text) : undefined;
    if (entity?.kind !== undefined) return [{ name, label: ENTITY_WORD[entity.kind], value: entity.value }];
    return [{ name, label: LABEL[name], value: valueWords(name, text) }];
  });
}

function splitEntity(text: string): { kind: EntityKind | undefined; value: string } {
  const colon = text.indexOf(":");
  const kind = ENTITY_KINDS.find((each) => each === text.slice(0, colon));
  return kind === undefined ? { kind, value: text } : { kind, value: text.slice(colon + 1) };
}

function valueWords(name: FilterName, text: string): string {
  const each = (word: (value: string) => string) => text.split(",").map(word).join(", ");
  switch (name) {
    case "source":
      return each((source) => DOMAIN_WORD[domainOf(source)]);
    case "assignee":
      return each((person) => (person === NOBODY ? "nobody" : person === ME ? "me" : person));
    case "time":
      return text === "created" ? "raised in the range" : "happened in the range";
    case "search":
      return `“${text}”`;
    default:
      return each((value) => value);
  }
}
