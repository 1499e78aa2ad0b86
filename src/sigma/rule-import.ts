import { ruleFileParser } from "../detection/rules/rule-file.ts";
import { sourceNames } from "../model/event.ts";
import type { Rule } from "../model/rule.ts";
import type { ExceptionInput, RuleInput } from "../model/rule-schema.ts";
import type { StoredRule } from "./filter.ts";
import { importSigma } from "./import.ts";
import type { ImportNote } from "./import-note.ts";
import { parseMapping, type Mapping, type MappingFault } from "./mapping.ts";

// Imports rules in Sigma's format or in ours, for the API and the command line: reads them, then hands them to the rulebook.

export const IMPORT_FORMATS = ["sigma", "tocsin"] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

export interface ImportFile {
  readonly name: string;
  readonly content: string;
  readonly format: ImportFormat;
}

export interface ImportRequest {
  readonly files: readonly ImportFile[];
  /** Text of a Sigma mapping file. */
  readonly mapping?: string | undefined;
  /** False: imported rules are disabled. */
  readonly enabled: boolean;
  readonly platform: string;
  readonly timezone: string;
  /** Previously imported rules, for filters. */
  readonly stored?: readonly StoredRule[] | undefined;
}

export interface ImportRefusal {
  readonly name: string;
  /** File and line. */
  readonly place: string;
  readonly reasons: readonly string[];
}

export interface ImportRemark {
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

export interface ImportedRules {
  readonly rules: readonly { readonly place: string; readonly input: RuleInput }[];
  readonly refused: readonly ImportRefusal[];
  readonly remarks: readonly ImportRemark[];
  /** Exceptions that filters add to previously imported rules. */
  readonly exceptions: readonly FilterExceptions[];
}

export interface FilterExceptions {
  readonly name: string;
  readonly place: string;
  readonly wanted: readonly { readonly ruleId: string; readonly input: ExceptionInput }[];
}

/** Adds exceptions to rules; resolves to the reasons for those that could not be added. */
export type AddExceptions = (wanted: FilterExceptions["wanted"]) => Promise<readonly string[]>;

export interface ImportResult {
  /** The id is null in a dry run. */
  readonly imported: readonly { readonly id: string | null; readonly name: string }[];
  readonly refused: readonly ImportRefusal[];
  readonly remarks: readonly ImportRemark[];
}

/** Creates rules, or in a dry run only checks them; resolves to the rule or the fault of each. */
export type CreateRules = (
  inputs: readonly RuleInput[],
) => Promise<
  readonly ({ readonly rule: { readonly id: string | null; readonly name: string } } | { readonly fault: string })[]
>;

export function readRules(
  question: ImportRequest,
): ImportedRules | { readonly mappingFaults: readonly MappingFault[] } {
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

/** Parses a mapping in which `{platform}` stands for the platform prefix. */
export function readMapping(text: string, platform: string): ReturnType<typeof parseMapping> {
  return parseMapping(text.replaceAll("{platform}", platform));
}

export async function makeRules(
  rules: ImportedRules["rules"],
  create: CreateRules,
): Promise<Pick<ImportResult, "imported" | "refused">> {
  const made = rules.length === 0 ? [] : await create(rules.map(({ input }) => input));
  const imported: { id: string | null; name: string }[] = [];
  const refused: ImportRefusal[] = [];
  for (const [i, outcome] of made.entries()) {
    const { place, input } = rules[i]!;
    if ("rule" in outcome) imported.push({ id: outcome.rule.id, name: outcome.rule.name });
    else refused.push({ name: input.name, place, reasons: [outcome.fault] });
  }
  return { imported, refused };
}

/** Stored rules that filters can be applied to. */
export function storedRules(rules: readonly Pick<Rule, "id" | "origin">[]): StoredRule[] {
  return rules.flatMap(({ id, origin }) => (origin ? [{ id, origin }] : []));
}

export async function makeExceptions(
  exceptions: readonly FilterExceptions[],
  add: AddExceptions,
): Promise<Pick<ImportResult, "refused">> {
  const refused: ImportRefusal[] = [];
  for (const { name, place, wanted } of exceptions) {
    const reasons = await add(wanted);
    if (reasons.length > 0) refused.push({ name, place, reasons });
  }
  return { refused };
}

/** Drops remarks about rules that were refused in the end. */
export function remarksOnTaken(remarks: readonly ImportRemark[], refused: readonly ImportRefusal[]): ImportRemark[] {
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
): ImportedRules {
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

function wordsOf({ place, message }: ImportNote): string {
  return place === "" ? message : `${place}: ${message}`;
}

function readOwnRules(
  files: readonly ImportFile[],
  { platform, timezone, enabled }: Pick<ImportRequest, "platform" | "timezone" | "enabled">,
): ImportedRules {
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
