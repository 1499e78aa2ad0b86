import { hash } from "node:crypto";
import { contradictionOf } from "../detection/rules/contradiction.ts";
import { faultsOf } from "../lib/fault.ts";
import type { Severity } from "../model/event.ts";
import { toConditions, type ConditionInput, type RuleOrigin } from "../model/rule.ts";
import { originSchema, ruleInputSchema, type RuleInput } from "../model/rule-schema.ts";
import { allOf, listOf } from "./combine.ts";
import type { Aggregate } from "./aggregate-fields.ts";
import { readAggregation, readCorrelation, type BaseRule, type EventRule } from "./correlation.ts";
import { applyFilters, readFilter, type Filter, type StoredRule } from "./filter.ts";
import { readDetection, type SigmaDetection } from "./detection.ts";
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
import { ImportNotes, type ImportNote } from "./import-note.ts";
import { toInner, type InnerCorrelation } from "./part-list.ts";

// Converts Sigma documents to rules and reports the outcome of each document.

export interface SigmaOptions {
  /** Sources of this platform. */
  readonly sources: readonly string[];
  /** Takes precedence over the default mapping. */
  readonly mapping?: Mapping | undefined;
  readonly enabled?: boolean;
  /** Previously imported rules, for filters. */
  readonly stored?: readonly StoredRule[] | undefined;
}

/** Outcome of one document. */
export interface SigmaOutcome {
  readonly file: string;
  readonly line: number;
  readonly title: string;
  readonly id: string | null;
  /** `part`: raises no alerts by itself; other rules include it. */
  readonly kind: "taken" | "part" | "refused";
  readonly rule: RuleInput | null;
  readonly remarks: readonly ImportNote[];
  /** Reasons for the refusal. */
  readonly reasons: readonly ImportNote[];
  /** Exceptions that a filter adds to previously imported rules. */
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
  const known: KnownRules = new Map();
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
      made !== undefined &&
      finish(head, made, { schema, enabled, names: new Set(), notes: new ImportNotes() }) !== undefined
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

interface ReadRule {
  readonly notes: ImportNotes;
  /** For correlations; undefined if the rule cannot be imported. */
  readonly base: BaseRule | undefined;
  readonly aggregate: RuleContent | undefined;
}

type RuleContent = Omit<Aggregate, "window"> & { readonly window?: string; readonly origin?: RuleOrigin | null };

/** The origin by which later filters refer to the rule; null if a name is too long to store. */
function originOf({ id, name, logsource }: SigmaRule): RuleOrigin | null {
  const { category, product, service } = logsource;
  const given = Object.entries({ category, product, service }).filter(([, value]) => value !== undefined);
  const origin = { sigma: { id: id ?? null, name: name ?? null, logsource: Object.fromEntries(given) } };
  return originSchema.safeParse(origin).success ? origin : null;
}

function readRule(rule: SigmaRule, mappings: readonly Mapping[], filters: readonly (Filter | undefined)[]): ReadRule {
  const notes = new ImportNotes();
  const refused = { notes, base: undefined, aggregate: undefined };
  const placement = placementOf(rule.logsource, mappings);
  if (!placement) {
    notes.refuse("logsource", "has no entry in the mapping");
    return refused;
  }
  for (const key of placement.unsaid) {
    const given = rule.logsource[key];
    notes.remark(`logsource.${key}`, `${given} is ignored: the mapping has no condition that distinguishes it`);
  }
  if (placement.remark !== undefined) notes.remark("logsource", placement.remark);
  const detection = readDetection(rule.detection, placement, notes);
  if (!detection) return refused;
  const left = applyFilters(filters, rule, notes);
  const condition = allOf([...placement.conditions, detection.condition, ...left, ...placement.productConditions]);
  const contradiction = contradictionOf(toConditions([condition]));
  if (contradiction !== undefined) notes.remark("detection", `can never match: ${contradiction}`);
  const base: EventRule = {
    reference: rule.name ?? rule.id ?? rule.title,
    source: placement.source,
    condition,
    pathOf: (field) => {
      const [path, ...others] = placement.pathsOf(field);
      if (others.length > 0) {
        notes.remark("", `${field} is grouped and counted by ${path} only, not by ${others.join(", ")}`);
      }
      return path!;
    },
  };
  const aggregate = detection.aggregation === null ? plain(base) : aggregated(detection, base, notes);
  return { notes, base: detection.aggregation === null ? base : undefined, aggregate };
}

function plain({ source, condition }: EventRule): RuleContent {
  return { source, conditions: listOf(condition) };
}

function aggregated(
  { aggregation, timeframe }: SigmaDetection,
  base: EventRule,
  notes: ImportNotes,
): RuleContent | undefined {
  return readAggregation(aggregation!, timeframe, base, notes);
}

type KnownRules = Map<string, { readonly base: BaseRule | undefined; readonly index: number }>;

/** Converts correlations bottom-up, since one can be part of another. */
function correlateAll(documents: readonly SigmaDocument[], known: KnownRules): (ReadRule | undefined)[] {
  const correlated: (ReadRule | undefined)[] = documents.map(() => undefined);
  const waiting = new Map<number, SigmaCorrelation>();
  for (const [index, document] of documents.entries())
    if (document.kind === "correlation") waiting.set(index, document.rule);
  const isWaitedFor = (reference: string) =>
    [...waiting.values()].some((other) => referencesOf(other).includes(reference));
  while (waiting.size > 0) {
    const ready = [...waiting].filter(([, { correlation }]) => !correlation.rules.some(isWaitedFor));
    // The remaining correlations refer to each other in a circle; none can be imported.
    if (ready.length === 0)
      for (const [index, rule] of waiting)
        for (const reference of referencesOf(rule)) known.set(reference, { base: undefined, index });
    for (const [index, rule] of ready.length > 0 ? ready : waiting) {
      const outcome = correlate(rule, known);
      correlated[index] = outcome;
      for (const reference of referencesOf(rule)) known.set(reference, { base: outcome.base, index });
      waiting.delete(index);
    }
  }
  return correlated;
}

function correlate({ title, correlation }: SigmaCorrelation, known: KnownRules): ReadRule {
  const notes = new ImportNotes();
  if (correlation.rules.length === 0) notes.refuse("correlation.rules", "is required");
  const rules = correlation.rules.flatMap((reference, i) => {
    const found = known.get(reference);
    if (found?.base) return [{ ...found.base, reference }];
    const reason = found
      ? `the rule ${reference} could not be imported`
      : `there is no rule ${reference} in this import`;
    notes.refuse(`correlation.rules[${i}]`, reason);
    return [];
  });
  const aggregate = notes.refusals.length > 0 ? undefined : readCorrelation(correlation, rules, notes);
  const base = aggregate && {
    reference: title,
    source: aggregate.source,
    inner: innerOf(correlation, rules, aggregate),
  };
  return { notes, aggregate, base };
}

function innerOf(
  correlation: SigmaCorrelation["correlation"],
  rules: readonly BaseRule[],
  made: Aggregate,
): InnerCorrelation {
  return toInner(made, correlation["group-by"] ?? [], (fields) => {
    const other = { ...correlation, "group-by": [...fields] };
    const regrouped = readCorrelation(other, rules, new ImportNotes());
    return regrouped && innerOf(other, rules, regrouped);
  });
}

/** The correlation that raises alerts in place of a rule. */
interface Owner {
  readonly title: string;
  readonly isTaken: boolean;
}

function wordsOnOwner({ title, isTaken }: Owner): string {
  return isTaken
    ? `raises no alerts by itself: it is part of "${title}", which does not set generate: true`
    : `imported disabled: it is part of "${title}", which does not set generate: true and could not be imported`;
}

/**
 * The owning correlation of each rule, by index. A correlation that cannot be imported still owns its rules: they are meant
 * to be counted, and would raise an alert on every event.
 */
function ownersOf(
  documents: readonly SigmaDocument[],
  known: KnownRules,
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

/** Title of a correlation and names of the rules that raise no alerts by themselves. */
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

interface RuleContext {
  readonly schema: ReturnType<typeof ruleInputSchema>;
  readonly enabled: boolean;
  readonly names: Set<string>;
  readonly notes: ImportNotes;
}

function finish(
  head: SigmaHead,
  made: RuleContent,
  { schema, enabled, names, notes }: RuleContext,
): RuleInput | undefined {
  const severity = LEVELS.get(head.level?.toLowerCase() ?? "");
  if (!severity) notes.remark("level", `${head.level ? `${head.level} is unknown` : "is missing"}: medium is used`);
  const isRetired = head.status === "deprecated" || head.status === "unsupported";
  if (isRetired) notes.remark("status", `${head.status}: imported disabled`);
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

/** A unique name: rules with the same title are distinguished by id or by number. */
function uniqueName({ title, id }: SigmaHead, names: ReadonlySet<string>): string {
  const shortId = (id ?? "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, SHORT_ID_CHARACTERS);
  // A title without usable letters still gives a stable and distinct name in every import.
  const name = `sigma.${slugOf(title) || `rule_${shortId || hash("sha1", title).slice(0, SHORT_ID_CHARACTERS)}`}`;
  if (!names.has(name)) return name;
  const withId = `${name}_${shortId || "2"}`;
  for (let number = 2; ; number++) {
    const candidate = number === 2 ? withId : `${withId}_${number}`;
    if (!names.has(candidate)) return candidate;
  }
}

/** The title in the letters of a rule name: accents removed, special letters spelled out. */
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

/** Description with known false positives and the origin of the rule. */
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
