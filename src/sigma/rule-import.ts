import { ruleFileParser } from "../detection/rule-file.ts";
import { sourceNames } from "../model/event.ts";
import type { ExceptionInput, Rule, RuleInput } from "../model/rule.ts";
import type { StoredRule } from "./filter.ts";
import { importSigma } from "./import.ts";
import type { Note } from "./note.ts";
import { parseMapping, type Mapping, type MappingFault } from "./mapping.ts";

// Rules from elsewhere, in Sigma's form or in ours: read, then made by whoever keeps rules. The API and the command line
// do the same.

export const IMPORT_FORMATS = ["sigma", "tocsin"] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

export interface ImportFile {
  readonly name: string;
  readonly content: string;
  readonly format: ImportFormat;
}

export interface ImportQuestion {
  readonly files: readonly ImportFile[];
  /** The text of a mapping file for Sigma. */
  readonly mapping?: string | undefined;
  /** False: what is taken is not enabled. */
  readonly enabled: boolean;
  readonly platform: string;
  readonly timezone: string;
  /** Rules that were imported before, for filters. */
  readonly stored?: readonly StoredRule[] | undefined;
}

export interface Refusal {
  readonly name: string;
  /** File and line. */
  readonly place: string;
  readonly reasons: readonly string[];
}

export interface Remark {
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

export interface ReadRules {
  readonly rules: readonly { readonly place: string; readonly input: RuleInput }[];
  readonly refused: readonly Refusal[];
  readonly remarks: readonly Remark[];
  /** What filters add to rules that were imported before. */
  readonly exceptions: readonly FilterExceptions[];
}

export interface FilterExceptions {
  readonly name: string;
  readonly place: string;
  readonly wanted: readonly { readonly ruleId: string; readonly input: ExceptionInput }[];
}

/** Adds exceptions to rules; gives why some could not be added. */
export type AddExceptions = (wanted: FilterExceptions["wanted"]) => Promise<readonly string[]>;

export interface ImportResult {
  /** The id is null where nothing was made, since it was only tried. */
  readonly imported: readonly { readonly id: string | null; readonly name: string }[];
  readonly refused: readonly Refusal[];
  readonly remarks: readonly Remark[];
}

/** Makes rules, or only says which ones it would make; of each that cannot be made, why. */
export type CreateRules = (
  inputs: readonly RuleInput[],
) => Promise<
  readonly ({ readonly rule: { readonly id: string | null; readonly name: string } } | { readonly fault: string })[]
>;

export function readRules(question: ImportQuestion): ReadRules | { readonly mappingFaults: readonly MappingFault[] } {
  const { files, platform, timezone, enabled } = question;
  const parsed = question.mapping === undefined ? undefined : readMapping(question.mapping, platform);
  if (parsed && "faults" in parsed) return { mappingFaults: parsed.faults };
  const sigma = readSigmaRules(files, { mapping: parsed?.mapping, platform, enabled, stored: question.stored });
  const own = readOwnRules(files, { platform, timezone, enabled });
  return {
    rules: [...sigma.rules, ...own.rules],
    refused: [...sigma.refused, ...own.refused],
    remarks: [...sigma.remarks, ...own.remarks],
    exceptions: sigma.exceptions,
  };
}

/** A mapping as people write it: `{platform}` stands for the platform's word. */
export function readMapping(text: string, platform: string): ReturnType<typeof parseMapping> {
  return parseMapping(text.replaceAll("{platform}", platform));
}

export async function makeRules(
  rules: ReadRules["rules"],
  create: CreateRules,
): Promise<Pick<ImportResult, "imported" | "refused">> {
  const made = rules.length === 0 ? [] : await create(rules.map(({ input }) => input));
  const imported: { id: string | null; name: string }[] = [];
  const refused: Refusal[] = [];
  for (const [i, outcome] of made.entries()) {
    const { place, input } = rules[i]!;
    if ("rule" in outcome) imported.push({ id: outcome.rule.id, name: outcome.rule.name });
    else refused.push({ name: input.name, place, reasons: [outcome.fault] });
  }
  return { imported, refused };
}

/** Rules that filters can be applied to after they were imported. */
export function storedRules(rules: readonly Pick<Rule, "id" | "origin">[]): StoredRule[] {
  return rules.flatMap(({ id, origin }) => (origin ? [{ id, origin }] : []));
}

export async function makeExceptions(
  exceptions: readonly FilterExceptions[],
  add: AddExceptions,
): Promise<Pick<ImportResult, "refused">> {
  const refused: Refusal[] = [];
  for (const { name, place, wanted } of exceptions) {
    const reasons = await add(wanted);
    if (reasons.length > 0) refused.push({ name, place, reasons });
  }
  return { refused };
}

/** What is said about a rule that was not made in the end is of no use to anybody. */
export function remarksOnTaken(remarks: readonly Remark[], refused: readonly Refusal[]): Remark[] {
  const places = new Set(refused.map(({ place }) => place));
  return remarks.filter(({ place }) => !places.has(place));
}

interface SigmaSettings {
  readonly mapping: Mapping | undefined;
  readonly platform: string;
  readonly enabled: boolean;
  readonly stored: readonly StoredRule[] | undefined;
}

function readSigmaRules(
  files: readonly ImportFile[],
  { mapping, platform, enabled, stored }: SigmaSettings,
): ReadRules {
  const outcomes = importSigma(
    files.filter(({ format }) => format === "sigma"),
    { mapping, enabled, sources: sourceNames(platform), stored },
  );
  const placeOf = ({ file, line }: { file: string; line: number }) => `${file}:${line}`;
  return {
    rules: outcomes.flatMap((outcome) => (outcome.rule ? [{ place: placeOf(outcome), input: outcome.rule }] : [])),
    refused: outcomes
      .filter(({ kind }) => kind === "refused")
      .map((outcome) => ({ name: outcome.title, place: placeOf(outcome), reasons: outcome.reasons.map(wordsOf) })),
    remarks: outcomes.flatMap((outcome) =>
      outcome.remarks.map((note) => ({ name: outcome.title, place: placeOf(outcome), message: wordsOf(note) })),
    ),
    exceptions: outcomes
      .filter(({ exceptions = [] }) => exceptions.length > 0)
      .map((outcome) => ({ name: outcome.title, place: placeOf(outcome), wanted: outcome.exceptions! })),
  };
}

function wordsOf({ place, message }: Note): string {
  return place === "" ? message : `${place}: ${message}`;
}

function readOwnRules(
  files: readonly ImportFile[],
  { platform, timezone, enabled }: Pick<ImportQuestion, "platform" | "timezone" | "enabled">,
): ReadRules {
  const parse = ruleFileParser({ platform, timezone });
  const parsed = files.filter(({ format }) => format === "tocsin").map(parse);
  return {
    rules: parsed.flatMap(({ documents }) =>
      documents.map(({ file, line, input }) => ({
        place: `${file}:${line}`,
        input: { ...input, enabled: input.enabled && enabled },
      })),
    ),
    refused: parsed.flatMap((file) =>
      file.refused.map(({ name, file: place, line, faults }) => ({
        name,
        place: `${place}:${line}`,
        reasons: faults.map(({ path, message }) => wordsOf({ place: path, message })),
      })),
    ),
    remarks: [],
    exceptions: [],
  };
}
