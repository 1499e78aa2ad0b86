import { hash } from "node:crypto";
import { contradictionOf } from "../detection/contradiction.ts";
import { faultsOf } from "../lib/fault.ts";
import type { Severity } from "../model/event.ts";
import { toConditions, type ConditionInput, type RuleInput, type RuleOrigin } from "../model/rule.ts";
import { originSchema, ruleInputSchema } from "../model/rule-schema.ts";
import { allOf, listOf } from "./combine.ts";
import { groupPaths, readAggregation, readCorrelation, type Aggregate, type BaseRule } from "./correlation.ts";
import { applyFilters, readFilter, type Filter, type StoredRule } from "./filter.ts";
import { readDetection, type Detection } from "./detection.ts";
import {
  readSigma,
  referencesOf,
  type SigmaDocument,
  type SigmaCorrelation,
  type SigmaFile,
  type SigmaHead,
  type SigmaRule,
} from "./documents.ts";
import { placementOf, readDefaultMapping, type Mapping } from "./mapping.ts";
import { Notes, type Note } from "./note.ts";

// Sigma in, rules out, and for each rule what was made of it.

export interface SigmaOptions {
  /** The sources of this platform. */
  readonly sources: readonly string[];
  /** Goes before the default mapping. */
  readonly mapping?: Mapping | undefined;
  readonly enabled?: boolean;
  /** Rules that were imported before, for filters. */
  readonly stored?: readonly StoredRule[] | undefined;
}

/** What became of one document. */
export interface SigmaOutcome {
  readonly file: string;
  readonly line: number;
  readonly title: string;
  readonly id: string | null;
  /** `part`: it raises nothing by itself, other rules have it in them. */
  readonly kind: "taken" | "part" | "refused";
  readonly rule: RuleInput | null;
  readonly remarks: readonly Note[];
  /** Why it is refused. */
  readonly reasons: readonly Note[];
  /** Of a filter: what it adds to rules that were imported before. */
  readonly exceptions?: ReturnType<Filter["takeStored"]>;
}

const NAME_CHARACTERS_MAX = 180;
const SHORT_ID_CHARACTERS = 8;
const TAGS_MAX = 50;
const TAG_CHARACTERS_MAX = 100;
const REFERENCES_MAX = 50;
const REFERENCE_CHARACTERS_MAX = 1000;
const TITLE_CHARACTERS_MAX = 300;
const DESCRIPTION_CHARACTERS_MAX = 10_000;

export function importSigma(files: readonly SigmaFile[], options: SigmaOptions): SigmaOutcome[] {
  const mappings = [...(options.mapping ? [options.mapping] : []), readDefaultMapping()];
  const documents = files.flatMap(readSigma);
  const filters = documents.map((document) =>
    document.kind === "filter" ? readFilter(document.rule, mappings) : undefined,
  );
  const read = documents.map((document) =>
    document.kind === "rule" ? readRule(document.rule, mappings, filters) : undefined,
  );
  const known: Known = new Map();
  for (const [index, document] of documents.entries()) {
    if (document.kind !== "rule") continue;
    for (const reference of referencesOf(document.rule)) known.set(reference, { base: read[index]!.base, index });
  }
  const correlated = correlateAll(documents, known);
  const names = new Set<string>();
  const schema = ruleInputSchema(options.sources);
  const { enabled = true } = options;
  const owners = ownersOf(documents, known, (head, index) => {
    const made = correlated[index]!.aggregate;
    return (
      made !== undefined && finish(head, made, { schema, enabled, names: new Set(), notes: new Notes() }) !== undefined
    );
  });
  return documents.map((document, index): SigmaOutcome => {
    const { file, line } = document;
    if (document.kind === "unreadable") {
      const { title, id, faults } = document;
      return { file, line, title, id, kind: "refused", rule: null, remarks: [], reasons: faults };
    }
    if (document.kind === "filter") {
      const { title, id = null } = document.rule;
      const exceptions = filters[index]!.takeStored(options.stored ?? []);
      return { file, line, title, id: id ?? null, rule: null, exceptions, ...filters[index]!.outcome() };
    }
    const { notes, aggregate } = document.kind === "rule" ? read[index]! : correlated[index]!;
    const head = document.rule;
    const about = { file, line, title: head.title, id: head.id ?? null };
    const owner = owners.get(index);
    if (owner && aggregate) {
      notes.remark("", wordsOnOwner(owner));
      if (owner.isTaken) return { ...about, kind: "part", rule: null, remarks: notes.remarks, reasons: [] };
    }
    const origin = document.kind === "rule" ? originOf(document.rule) : null;
    const made = aggregate && { ...aggregate, origin };
    const rule = made && finish(head, made, { schema, enabled: enabled && !owner, names, notes });
    if (!rule) return { ...about, kind: "refused", rule: null, remarks: notes.remarks, reasons: notes.refusals };
    return { ...about, kind: "taken", rule, remarks: notes.remarks, reasons: [] };
  });
}

interface Read {
  readonly notes: Notes;
  /** For correlations; undefined when the rule cannot be taken. */
  readonly base: BaseRule | undefined;
  readonly aggregate: Made | undefined;
}

type Made = Omit<Aggregate, "window"> & { readonly window?: string; readonly origin?: RuleOrigin | null };

/** What filters that are imported later know the rule by. Of a longer name nobody could say it again. */
function originOf({ id, name, logsource }: SigmaRule): RuleOrigin | null {
  const { category, product, service } = logsource;
  const given = Object.entries({ category, product, service }).filter(([, value]) => value !== undefined);
  const origin = { sigma: { id: id ?? null, name: name ?? null, logsource: Object.fromEntries(given) } };
  return originSchema.safeParse(origin).success ? origin : null;
}

function readRule(rule: SigmaRule, mappings: readonly Mapping[], filters: readonly (Filter | undefined)[]): Read {
  const notes = new Notes();
  const refused = { notes, base: undefined, aggregate: undefined };
  const placement = placementOf(rule.logsource, mappings);
  if (!placement) {
    notes.refuse("logsource", "no entry of the mapping speaks of it");
    return refused;
  }
  for (const key of placement.unsaid) {
    const given = rule.logsource[key];
    notes.remark(`logsource.${key}`, `${given} is not looked at: the mapping does not say how to tell it from others`);
  }
  if (placement.remark !== undefined) notes.remark("logsource", placement.remark);
  const detection = readDetection(rule.detection, placement, notes);
  if (!detection) return refused;
  const left = applyFilters(filters, rule, notes);
  const condition = allOf([...placement.conditions, detection.condition, ...left, ...placement.productConditions]);
  const contradiction = contradictionOf(toConditions([condition]));
  if (contradiction !== undefined) notes.remark("detection", `can never match: ${contradiction}`);
  const base: BaseRule = {
    reference: rule.name ?? rule.id ?? rule.title,
    source: placement.source,
    condition,
    pathOf: (field) => {
      const [path, ...others] = placement.pathsOf(field);
      if (others.length > 0) {
        notes.remark("", `${field} is grouped by and counted under ${path} alone, not under ${others.join(", ")}`);
      }
      return path!;
    },
  };
  const aggregate = detection.aggregation === null ? plain(base) : aggregated(detection, base, notes);
  return { notes, base: detection.aggregation === null ? base : undefined, aggregate };
}

function plain({ source, condition }: BaseRule): Made {
  return { source, conditions: listOf(condition) };
}

function aggregated({ aggregation, timeframe }: Detection, base: BaseRule, notes: Notes): Made | undefined {
  return readAggregation(aggregation!, timeframe, base, notes);
}

type Known = Map<string, { readonly base: BaseRule | undefined; readonly index: number }>;
type Correlated = Omit<Read, "base">;

/** Those over rules first: what they count can be a step of the others. */
function correlateAll(documents: readonly SigmaDocument[], known: Known): (Correlated | undefined)[] {
  const correlated: (Correlated | undefined)[] = documents.map(() => undefined);
  const isCorrelation = (reference: string) =>
    documents.some(
      ({ kind, ...other }) => kind === "correlation" && "rule" in other && referencesOf(other.rule).includes(reference),
    );
  const visit = (chained: boolean) => {
    for (const [index, document] of documents.entries()) {
      if (document.kind !== "correlation") continue;
      if (document.rule.correlation.rules.some(isCorrelation) !== chained) continue;
      const outcome = correlate(document.rule, known);
      correlated[index] = outcome;
      const base = chained ? undefined : countedBase(document.rule, outcome.aggregate, known);
      for (const reference of referencesOf(document.rule)) known.set(reference, { base, index });
    }
  };
  visit(false);
  visit(true);
  return correlated;
}

function correlate({ correlation }: SigmaCorrelation, known: Known): Correlated {
  const notes = new Notes();
  if (correlation.rules.length === 0) notes.refuse("correlation.rules", "is required");
  const rules = correlation.rules.flatMap((reference, i) => {
    const found = known.get(reference);
    if (found?.base) return [{ ...found.base, reference }];
    const reason = found
      ? `the rule ${reference} could not be taken, or is a correlation that cannot be part of another`
      : `there is no rule ${reference} among those that are imported together`;
    notes.refuse(`correlation.rules[${i}]`, reason);
    return [];
  });
  const aggregate = notes.refusals.length > 0 ? undefined : readCorrelation(correlation, rules, notes);
  return { notes, aggregate };
}

/** An event_count as a step of another correlation has it. */
function countedBase({ correlation }: SigmaCorrelation, made: Made | undefined, known: Known): BaseRule | undefined {
  if (!made?.threshold || correlation.type !== "event_count" || made.window === undefined) return undefined;
  const reference = correlation.rules[0]!;
  const first = { ...known.get(reference)!.base!, reference };
  const { count, lte, lt } = made.threshold;
  // Few of something cannot be a step: it is known only when the window is over.
  if (count === undefined || lte !== undefined || lt !== undefined) return undefined;
  return {
    ...first,
    source: made.source,
    condition: allOf(made.conditions),
    counted: { count, groupBy: groupPaths(correlation, first), window: made.window },
  };
}

/** The correlation that speaks for a rule. */
interface Owner {
  readonly title: string;
  readonly isTaken: boolean;
}

function wordsOnOwner({ title, isTaken }: Owner): string {
  return isTaken
    ? `raises nothing by itself: it is part of "${title}" (generate is not true there)`
    : `taken, but not enabled: "${title}" is to speak for it (generate is not true there) and could not be taken`;
}

/**
 * The rules that a correlation speaks for, by their place in the list. One that cannot be taken owns its rules all the same:
 * what is meant to be counted would raise an alert on every event.
 */
function ownersOf(
  documents: readonly SigmaDocument[],
  known: Known,
  isTaken: (head: SigmaHead, index: number) => boolean,
): Map<number, Owner> {
  const owners = new Map<number, Owner>();
  for (const [index, document] of documents.entries()) {
    const spoken = spokenFor(document);
    if (!spoken) continue;
    const { title } = spoken;
    const owner = { title, isTaken: document.kind === "correlation" && isTaken(document.rule, index) };
    for (const reference of spoken.rules) {
      const found = known.get(reference)?.index;
      if (found !== undefined && !owners.get(found)?.isTaken) owners.set(found, owner);
    }
  }
  return owners;
}

/** Of a correlation: its title, and the names of the rules that are not to speak for themselves. */
function spokenFor(document: SigmaDocument): { readonly title: string; readonly rules: readonly string[] } | undefined {
  if (document.kind === "unreadable") return { title: document.title, rules: document.spokenFor };
  if (document.kind !== "correlation") return undefined;
  const { title, generate, correlation } = document.rule;
  return { title, rules: generate === true || correlation.generate === true ? [] : correlation.rules };
}

const LEVELS: ReadonlyMap<string, Severity> = new Map([
  ["informational", "info"],
  ["info", "info"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["critical", "critical"],
]);

interface Finishing {
  readonly schema: ReturnType<typeof ruleInputSchema>;
  readonly enabled: boolean;
  readonly names: Set<string>;
  readonly notes: Notes;
}

function finish(head: SigmaHead, made: Made, { schema, enabled, names, notes }: Finishing): RuleInput | undefined {
  const severity = LEVELS.get(head.level?.toLowerCase() ?? "");
  if (!severity) notes.remark("level", `${head.level ? `${head.level} is not known` : "is missing"}: medium is taken`);
  const isRetired = head.status === "deprecated" || head.status === "unsupported";
  if (isRetired) notes.remark("status", `${head.status}: taken, but not enabled`);
  const parsed = schema.safeParse({
    ...made,
    name: uniqueName(head, names),
    title: head.title.trim().slice(0, TITLE_CHARACTERS_MAX),
    description: describe(head),
    severity: severity ?? "medium",
    enabled: enabled && !isRetired,
    tags: [...new Set(head.tags.map((tag) => tag.trim().toLowerCase().slice(0, TAG_CHARACTERS_MAX)))]
      .filter((tag) => tag !== "")
      .slice(0, TAGS_MAX),
    references: head.references
      .map((reference) => reference.trim().slice(0, REFERENCE_CHARACTERS_MAX))
      .filter((reference) => reference !== "")
      .slice(0, REFERENCES_MAX),
    actions: [{ alert: { channels: [] } }],
  } satisfies Record<string, unknown> & { conditions: ConditionInput[] });
  if (parsed.success) {
    names.add(parsed.data.name);
    return parsed.data;
  }
  for (const { field, message } of faultsOf(parsed.error)) notes.refuse(field, message);
  return undefined;
}

/** Two rules of one title are told apart by their ids, or by their number. */
function uniqueName({ title, id }: SigmaHead, names: ReadonlySet<string>): string {
  const shortId = (id ?? "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, SHORT_ID_CHARACTERS);
  // A title in letters that a name cannot have still gives the same name in every import, and another than the next one.
  const name = `sigma.${slugOf(title) || `rule_${shortId || hash("sha1", title).slice(0, SHORT_ID_CHARACTERS)}`}`;
  if (!names.has(name)) return name;
  const withId = `${name}_${shortId || "2"}`;
  for (let number = 2; ; number++) {
    const candidate = number === 2 ? withId : `${withId}_${number}`;
    if (!names.has(candidate)) return candidate;
  }
}

/** In the letters that a name may have: without accents, and what is a letter of its own as it is spelled without it. */
function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[ßæœøđłþð]/g, (letter) => SPELLED[letter]!)
    .normalize("NFKD")
    .replaceAll(/\p{M}+/gu, "")
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, NAME_CHARACTERS_MAX);
}
const SPELLED: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  đ: "d",
  ł: "l",
  þ: "th",
  ð: "d",
};

/** What a person should know, and where the rule is from. */
function describe({ title, description, falsepositives, id, author, status }: SigmaHead): string {
  const known = falsepositives.filter((line) => !/^(none|unknown|unlikely)$/i.test(line.trim()));
  const origin = [`Sigma rule${id ? ` ${id}` : ""}`, author && `by ${author}`, status && `status ${status}`];
  return [
    description?.trim() || title.trim(),
    known.length > 0 && `Known false positives: ${known.join("; ")}.`,
    `${origin.filter(Boolean).join(", ")}.`,
  ]
    .filter(Boolean)
    .join("\n\n")
    .slice(0, DESCRIPTION_CHARACTERS_MAX);
}
