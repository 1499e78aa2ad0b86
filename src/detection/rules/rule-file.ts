import { z } from "zod";
import { faultsOf, WITH_NAMES } from "../../lib/fault.ts";
import { parseTime } from "../../lib/time.ts";
import { parseYaml, type YamlDocument } from "../../lib/yaml.ts";
import { sourceNames } from "../../model/event.ts";
import type { Rule } from "../../model/rule.ts";
import { toRuleBody } from "../../model/rule-body.ts";
import { ruleInputSchema, type RuleInput } from "../../model/rule-schema.ts";

// Rule files: YAML with one or several documents, each a rule as in the API, optionally with tests. In every string
// `{platform}` is replaced by the platform's name and `{timezone}` by its time zone.

const RULE_FILE_CHARACTERS_MAX = 8 * 1024 * 1024;
const DOCUMENTS_MAX = 10_000;
const ID = /^rule_[0-9a-f]{32}$/;

export interface RuleFile {
  readonly name: string;
  readonly content: string;
}

export interface RuleFileSettings {
  readonly platform: string;
  readonly timezone: string;
}

export interface RuleFileFault {
  readonly file: string;
  readonly line: number;
  /** `conditions[0].regex`; empty for the whole rule. */
  readonly path: string;
  readonly message: string;
}

export interface RuleDocument {
  readonly file: string;
  readonly line: number;
  /** Set for built-in rules, which have the same id in every installation. */
  readonly id: string | null;
  readonly createdMs: number | null;
  readonly input: RuleInput;
  /** The first line of a test. It parses the file again, so call it only for failed tests. */
  lineOfTest(index: number): number;
}

const timeSchema = z.string().transform((text, context) => {
  const ms = parseTime(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: "must be an ISO 8601 time such as 2026-11-02T12:00:00Z" });
  return z.NEVER;
});

/** A document that is not a valid rule, with its faults. */
export interface RefusedDocument {
  /** The name of the rule, or of the file if the rule has none. */
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly faults: readonly RuleFileFault[];
}

export interface ParsedRuleFile {
  readonly documents: readonly RuleDocument[];
  readonly refused: readonly RefusedDocument[];
  /** The faults of all refused documents. */
  readonly faults: readonly RuleFileFault[];
}

/** Splits the text of a file into documents. */
export type ReadDocuments = (content: string) => YamlDocument[];

export const readDocuments: ReadDocuments = (content) => parseYaml(content, DOCUMENTS_MAX);

/** A parser for all files with the same settings. */
export function ruleFileParser(
  settings: RuleFileSettings,
  read: ReadDocuments = readDocuments,
): (file: RuleFile) => ParsedRuleFile {
  const sources = sourceNames(settings.platform);
  const rule = ruleInputSchema(sources);
  const metadata = z.object({
    id: z.string().regex(ID, "must be rule_ and 32 hexadecimal digits").optional(),
    created: timeSchema.optional(),
  });
  return (file) => parseFile(file, { rule, metadata, settings, read });
}

interface RuleFileSchemas {
  readonly rule: ReturnType<typeof ruleInputSchema>;
  readonly metadata: z.ZodType<{ id?: string | undefined; created?: number | undefined }>;
  readonly settings: RuleFileSettings;
  readonly read: ReadDocuments;
}

function parseFile(
  { name: file, content }: RuleFile,
  { rule: ruleSchema, metadata: metadataSchema, settings, read }: RuleFileSchemas,
): ParsedRuleFile {
  const documents: RuleDocument[] = [];
  const refused: RefusedDocument[] = [];
  const refuse = (line: number, message: string) => {
    refused.push({ name: file, file, line, faults: [{ file, line, path: "", message }] });
  };
  const isTooLarge = content.length > RULE_FILE_CHARACTERS_MAX;
  if (isTooLarge) refuse(1, `the file exceeds ${RULE_FILE_CHARACTERS_MAX} characters`);
  for (const document of isTooLarge ? [] : read(content)) {
    const { line } = document;
    if ("fault" in document) {
      refuse(line, document.fault);
      continue;
    }
    const value = substitute(document.value, settings);
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      refuse(line, "is not a rule");
      continue;
    }
    const { id, created, ...rule } = value as Record<string, unknown>;
    const parsed = ruleSchema.safeParse(rule, WITH_NAMES);
    const metadata = metadataSchema.safeParse({ id, created });
    if (parsed.success && metadata.success) {
      documents.push({
        file,
        line,
        id: metadata.data.id ?? null,
        createdMs: metadata.data.created ?? null,
        input: parsed.data,
        lineOfTest: (index) => document.lineOf(["tests", index]),
      });
      continue;
    }
    const faults = [parsed, metadata]
      .flatMap(({ error }) => (error ? faultsOf(error) : []))
      .map(({ field, message }) => ({ file, line: document.lineOf(segmentsOf(field)), path: field, message }));
    const { name } = rule;
    refused.push({ name: typeof name === "string" && name !== "" ? name : file, file, line, faults });
  }
  if (documents.length === 0 && refused.length === 0) refuse(1, "holds no rule");
  return { documents, refused, faults: refused.flatMap(({ faults }) => faults) };
}

/** Converts a document to a rule. */
export function toRule({ id, createdMs, input }: RuleDocument, { builtin }: { readonly builtin: boolean }): Rule {
  const at = createdMs ?? 0;
  return {
    ...toRuleBody(input),
    id: id ?? `rule_${"0".repeat(32)}`,
    exceptions: input.exceptions.map(({ conditions, reason, expires_at }, i) => ({
      id: `exc_${String(i).padStart(32, "0")}`,
      conditions,
      reason,
      author: "system",
      createdAt: at,
      expiresAt: expires_at ?? null,
    })),
    builtin,
    createdAt: at,
    updatedAt: at,
    revision: 0,
    activeAfter: null,
  };
}

/** Formats a fault as `file:12: conditions[0].regex: message`. */
export function describeFault({ file, line, path, message }: RuleFileFault): string {
  return `${file}:${line}: ${path === "" ? "" : `${path}: `}${message}`;
}

function substitute(value: unknown, settings: RuleFileSettings): unknown {
  if (typeof value === "string") {
    return value.replaceAll("{platform}", settings.platform).replaceAll("{timezone}", settings.timezone);
  }
  if (Array.isArray(value)) return value.map((item) => substitute(item, settings));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, substitute(inner, settings)]));
}

function segmentsOf(path: string): PropertyKey[] {
  return path
    .split(/[.[\]]+/)
    .filter((segment) => segment !== "")
    .map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment));
}
