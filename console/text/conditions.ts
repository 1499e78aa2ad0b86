import { DOMAIN_WORD, domainOf } from "./domains.ts";

// Conditions of rules and exceptions in plain English. What stands for a value of an event is a part of its own, to be set apart.

export interface Value {
  readonly value: string;
}
export type Phrase = readonly (string | Value)[];

/** A condition, or a heading with the conditions under it. */
export interface ConditionWords {
  readonly phrase: Phrase;
  readonly inner?: readonly ConditionWords[];
}

type Condition = Readonly<Record<string, unknown>>;

const VALUES_SHOWN_MAX = 6;

const FIELD_WORDS: ReadonlyMap<string, string> = new Map([
  ["type", "the event"],
  ["source", "the source"],
  ["severity", "the severity"],
  ["class", "the class"],
  ["timestamp", "the time"],
  ["id", "the id of the event"],
  ["*", "anything in the event"],
  ["raw.*", "anything that was sent"],
  ["raw.src_ip", "source address"],
  ["raw.dst_ip", "destination address"],
  ["raw.src_port", "source port"],
  ["raw.dst_port", "destination port"],
  ["raw.src_mac", "hardware address"],
  ["raw.from", "caller"],
  ["raw.to", "number called"],
  ["raw.user", "person"],
  ["raw.query", "name asked for"],
  ["enrichment.geo.country", "country"],
  ["enrichment.geo.city", "city"],
  ["enrichment.abuse_ipdb.score", "abuse score"],
]);

/** `raw.src_ip` is `source address`, `raw.badge_state` is `badge state`. */
export function fieldName(path: string): string {
  return (
    FIELD_WORDS.get(path)?.replace(/^the /, "") ?? path.replace(/^(raw|enrichment)\./, "").replaceAll(/[_.]+/g, " ")
  );
}

function fieldWords(path: string): string {
  const known = FIELD_WORDS.get(path);
  return known !== undefined && !path.includes(".") ? known : `the ${fieldName(path)}`;
}

const OPERATOR_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    equals: "is",
    in: "is",
    contains: "contains",
    starts_with: "starts with",
    prefix: "starts with",
    ends_with: "ends with",
    glob: "looks like",
    regex: "matches the pattern",
    cidr: "is in the network",
    gt: "is more than",
    gte: "is at least",
    lt: "is less than",
    lte: "is at most",
    during: "is within",
    time_part: "falls on",
    not_equals: "is not",
    not_in: "is none of",
  }),
);
const FIELD_OPERATOR_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    equals_field: "is the same as",
    contains_field: "contains",
    starts_with_field: "starts with",
    ends_with_field: "ends with",
  }),
);

const INTERNAL_NETWORKS = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
const isInternal = (values: readonly unknown[]) =>
  values.length === INTERNAL_NETWORKS.length && INTERNAL_NETWORKS.every((network) => values.includes(network));

function valueText(field: string, value: unknown): string {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value !== "string") return typeof value === "number" ? String(value) : JSON.stringify(value);
  if (field === "type") return value.replaceAll("_", " ");
  if (field === "source") return value === "custom" ? "your own programs" : DOMAIN_WORD[domainOf(value)];
  return value === "" ? "empty" : value;
}

/** `a, b or c`. */
function listed(values: readonly string[], word: "or" | "and"): Phrase {
  const shown = values.length > VALUES_SHOWN_MAX ? values.slice(0, VALUES_SHOWN_MAX - 1) : values;
  const rest = values.length - shown.length;
  const parts: (string | Value)[] = shown.flatMap((value, index) => {
    const isLast = index === shown.length - 1 && rest === 0;
    return index === 0 ? [{ value }] : [isLast ? ` ${word} ` : ", ", { value }];
  });
  return rest === 0 ? parts : [...parts, ` ${word} ${rest} more`];
}

/** `is in the network` is `is not in the network`, `starts with` is `does not start with`. */
function negated(words: string): string {
  if (words === "is not") return "is";
  const [first = "", ...rest] = words.split(" ");
  const verb = first === "is" ? "is not" : `does not ${first.replace(/(?<=ch)es$|s$/, "")}`;
  return [verb, ...rest].join(" ");
}

function testWords(condition: Condition, isNot: boolean): Phrase {
  const field = typeof condition["field"] === "string" ? condition["field"] : "";
  const caseWords = condition["ignore_case"] === true ? [" (in upper or lower case)"] : [];
  const name = fieldWords(field);
  for (const [operator, value] of Object.entries(condition)) {
    if (operator === "field" || operator === "ignore_case") continue;
    if (operator === "exists") return [`${name} ${(value === true) !== isNot ? "is given" : "is missing"}`];
    if (operator === "equals" && typeof value === "boolean") {
      return [`it is ${value !== isNot ? "" : "not "}${fieldName(field)}`];
    }
    const otherWords = FIELD_OPERATOR_WORDS.get(operator);
    if (otherWords !== undefined) {
      return [`${name} ${isNot ? negated(otherWords) : otherWords} ${fieldWords(String(value))}`, ...caseWords];
    }
    const words = OPERATOR_WORDS.get(operator);
    if (words === undefined) continue;
    const values = Array.isArray(value) ? (value as unknown[]) : [value];
    if (operator === "cidr" && isInternal(values)) return [`${name} is ${isNot ? "not " : ""}internal`];
    const texts = values.map((each) => valueText(field, each));
    if (field === "enrichment.lists" && (operator === "equals" || operator === "in")) {
      return [`it is ${isNot ? "not " : ""}on the watch list `, ...listed(texts, "or")];
    }
    return [`${name} ${isNot ? negated(words) : words} `, ...listed(texts, "or"), ...caseWords];
  }
  return [`${name} …`];
}

const isTest = (condition: unknown): condition is Condition =>
  typeof condition === "object" && condition !== null && "field" in condition;

/** What cannot be a condition is shown as it is written: the service says what is wrong with it. */
export function conditionWords(condition: unknown): ConditionWords {
  if (typeof condition !== "object" || condition === null) return { phrase: [JSON.stringify(condition) ?? ""] };
  const it = condition as Condition;
  if (Array.isArray(it["any"])) return { phrase: ["one of these holds:"], inner: it["any"].map(conditionWords) };
  if (Array.isArray(it["all"])) return { phrase: ["all of these hold:"], inner: it["all"].map(conditionWords) };
  if ("not" in it) {
    const denied = it["not"];
    if (isTest(denied)) return { phrase: testWords(denied, true) };
    const { phrase, inner } = conditionWords(denied);
    return inner === undefined
      ? { phrase: ["not: ", ...phrase] }
      : { phrase: [phrase[0] === "one of these holds:" ? "none of these holds:" : "not all of these hold:"], inner };
  }
  if ("keyword" in it) {
    const words = Array.isArray(it["keyword"]) ? (it["keyword"] as unknown[]) : [it["keyword"]];
    return { phrase: ["any field contains ", ...listed(words.map(String), "or")] };
  }
  return { phrase: testWords(it, false) };
}

export const phraseText = (phrase: Phrase) =>
  phrase.map((part) => (typeof part === "string" ? part : part.value)).join("");
