import { z } from "zod";
import { parseDuration } from "../../lib/duration.ts";
import { faultsOf, WITH_NAMES } from "../../lib/fault.ts";
import { formatTime, parseTime } from "../../lib/time.ts";
import { parseYaml, type YamlDocument } from "../../lib/yaml.ts";
import {
  classOfType,
  CUSTOM_SOURCE,
  sourceNames,
  type Event,
  type JsonObject,
  type JsonValue,
} from "../../model/event.ts";
import { classSchema, severitySchema, typeSchema } from "../../model/event-schema.ts";
import { ANY_SOURCE, type Rule } from "../../model/rule.ts";
import { toRuleBody } from "../../model/rule-body.ts";
import { ruleInputSchema, type RuleInput } from "../../model/rule-schema.ts";

// Rule files: YAML with one or several documents, each a rule as in the API, optionally with tests. In every string
// `{platform}` is replaced by the platform's name and `{timezone}` by its time zone.

const RULE_FILE_CHARACTERS_MAX = 8 * 1024 * 1024;
const DOCUMENTS_MAX = 10_000;
const TESTS_MAX = 100;
const TEST_EVENTS_MAX = 10_000;
/** Default start of the events of a test: a Monday at noon. */
const TEST_START = "2026-11-02T12:00:00Z";
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

export interface RuleTest {
  readonly name: string;
  /** In order of arrival. */
  readonly events: readonly Event[];
  /** Time without events after the last one. */
  readonly waitMs: number;
  readonly alerts: number;
  /** Events of all alerts together. */
  readonly eventCount: number | null;
  /** The title of the first alert. */
  readonly title: string | null;
}

export interface RuleDocument {
  readonly file: string;
  readonly line: number;
  /** Set for built-in rules, which have the same id in every installation. */
  readonly id: string | null;
  readonly createdMs: number | null;
  readonly input: RuleInput;
  readonly tests: readonly RuleTest[];
  /** The first line of a test. It parses the file again, so call it only for failed tests. */
  lineOfTest(index: number): number;
}

const durationSchema = z.string().transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: "must be a duration such as 30s, 5m, 1h or 2d" });
  return z.NEVER;
});

const timeSchema = z.string().transform((text, context) => {
  const ms = parseTime(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: "must be an ISO 8601 time such as 2026-11-02T12:00:00Z" });
  return z.NEVER;
});

/** An offset from the start of the test such as `+90s`, or a time. */
const atSchema = z.string().transform((text, context) => {
  const ms = parseTime(text);
  if (ms !== undefined) return { ms };
  const offsetMs = text === "+0s" ? 0 : text.startsWith("+") ? parseDuration(text.slice(1)) : undefined;
  if (offsetMs !== undefined) return { offsetMs };
  context.addIssue({ code: "custom", message: "must be an offset such as +90s or an ISO 8601 time" });
  return z.NEVER;
});

const jsonSchema = z.record(z.string(), z.json()).default({}) as z.ZodType<JsonObject>;

function testSchema(sources: readonly string[]) {
  const eventSchema = z
    .strictObject({
      type: typeSchema,
      source: z.enum(sources).optional(),
      severity: severitySchema.default("info"),
      class: classSchema.optional(),
      at: atSchema.default({ offsetMs: 0 }),
      raw: jsonSchema,
      enrichment: jsonSchema,
      repeat: z.int().min(1).max(TEST_EVENTS_MAX).default(1),
      every: durationSchema.default(0),
    })
    .refine((event) => event.repeat > 1 || event.every === 0, { path: ["every"], message: "needs repeat" });
  return z.strictObject({
    name: z.string().trim().min(1).max(200),
    start: timeSchema.default(parseTime(TEST_START)!),
    events: z.array(eventSchema).max(TEST_EVENTS_MAX),
    wait: durationSchema.default(0),
    alerts: z.int().min(0),
    event_count: z.int().min(0).optional(),
    title: z.string().optional(),
  });
}

type TestInput = z.output<ReturnType<typeof testSchema>>;

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
    tests: z.array(testSchema(sources)).max(TESTS_MAX).default([]),
  });
  return (file) => parseFile(file, { rule, metadata, settings, read });
}

interface RuleFileSchemas {
  readonly rule: ReturnType<typeof ruleInputSchema>;
  readonly metadata: z.ZodType<{ id?: string | undefined; created?: number | undefined; tests: TestInput[] }>;
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
    const { id, created, tests, ...rule } = value as Record<string, unknown>;
    const parsed = ruleSchema.safeParse(rule, WITH_NAMES);
    const metadata = metadataSchema.safeParse({ id, created, tests });
    if (parsed.success && metadata.success) {
      const input = parsed.data;
      documents.push({
        file,
        line,
        id: metadata.data.id ?? null,
        createdMs: metadata.data.created ?? null,
        input,
        tests: metadata.data.tests.map((test) => toTest(test, input)),
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

function toTest({ name, start, events, wait, alerts, event_count, title }: TestInput, rule: RuleInput): RuleTest {
  const made: Event[] = [];
  for (const event of events) {
    const firstMs = "ms" in event.at ? event.at.ms : start + event.at.offsetMs;
    for (let number = 1; number <= event.repeat; number++) {
      made.push({
        // Arrival order is id order.
        id: `evt_${(made.length + 1).toString(16).padStart(32, "0")}`,
        type: event.type,
        source: event.source ?? (rule.source === ANY_SOURCE ? CUSTOM_SOURCE : rule.source),
        class: event.class ?? classOfType(event.type),
        severity: event.severity,
        timestamp: formatTime(firstMs + (number - 1) * event.every),
        raw: numbered(event.raw, number) as JsonObject,
        enrichment: numbered(event.enrichment, number) as JsonObject,
      });
    }
  }
  return { name, events: made, waitMs: wait, alerts, eventCount: event_count ?? null, title: title ?? null };
}

/** Replaces `{n}` in a repeated event by its number, counted from 1: a number if it stands alone, else part of the string. */
function numbered(value: JsonValue, number: number): JsonValue {
  if (value === "{n}") return number;
  if (typeof value === "string") return value.replaceAll("{n}", String(number));
  if (Array.isArray(value)) return value.map((item) => numbered(item, number));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbered(inner, number)]));
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
