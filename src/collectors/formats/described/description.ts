import { z } from "zod";
import { CLASSES, SEVERITIES, SOURCE_KINDS } from "../../../model/event.ts";
import { isTargetName, kindOfName } from "./field-values.ts";
import { Template, TemplateFault } from "./template.ts";

// The description of a line format in YAML: how its lines are recognised, how they are divided into values, and what event they
// become. docs/devices/own-formats.md explains it to people who write one.

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const TYPE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
const EVENTS_MAX = 400;
const WORDS_MAX = 400;
const TESTS_MAX = 500;

const text = z.string().min(1).max(1000);
const words = z.union([text.transform((word) => [word]), z.array(text).min(1).max(WORDS_MAX)]);
const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const template = text.superRefine((source, context) => {
  try {
    void new Template(source, kindOfName);
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    context.addIssue({ code: "custom", message: error.message });
  }
});

/** The first one that matches counts. */
const templates = z.union([template.transform((one) => [one]), z.array(template).min(1).max(50)]);

/** What a value must be: one of several, or one that begins with, ends with or contains a text, or any at all. */
const valueTest = z.union([
  scalar.transform((value) => ({ is: [value] })),
  z
    .array(scalar)
    .min(1)
    .max(WORDS_MAX)
    .transform((values) => ({ is: values })),
  z.strictObject({
    is: z.union([scalar.transform((value) => [value]), z.array(scalar).min(1)]).optional(),
    not: z.union([scalar.transform((value) => [value]), z.array(scalar).min(1)]).optional(),
    begins: words.optional(),
    ends: words.optional(),
    contains: words.optional(),
    exists: z.boolean().optional(),
  }),
]);

const when = z.record(text, valueTest);

const severity = z.union([
  z.enum(SEVERITIES),
  z.strictObject({
    of: text.describe("the value that decides"),
    values: z.record(scalar, z.enum(SEVERITIES)).optional(),
    scale: z.enum(["syslog", "cef"]).optional(),
    else: z.enum(SEVERITIES).default("info"),
  }),
]);

const type = z.union([
  z.string().regex(TYPE, "must be words in lower case, joined by _"),
  z.strictObject({
    of: text.describe("the value that names the type"),
    values: z.record(scalar, z.string().regex(TYPE, "must be words in lower case, joined by _")).optional(),
    else: z.string().regex(TYPE, "must be words in lower case, joined by _"),
  }),
]);

const fieldName = text.refine(isTargetName, "is not a field name; see docs/events.md");

const described = z.strictObject({
  when: when.optional(),
  pattern: templates.optional(),
  nothing: z.literal(true).optional().describe("the line is no news"),
  type: type.optional(),
  class: z.enum(CLASSES).optional(),
  source: z.enum(SOURCE_KINDS).optional(),
  severity: severity.optional(),
  set: z.record(text, z.union([z.string(), z.number(), z.boolean()])).optional(),
});

const columnGroup = z.union([
  z.array(z.string()).min(1),
  z.array(z.strictObject({ when, columns: z.array(z.string()) })).min(1),
]);

export const lineTest = z.strictObject({
  line: text.max(10_000),
  type: z.string().optional(),
  severity: z.enum(SEVERITIES).optional(),
  source: z.enum(SOURCE_KINDS).optional(),
  time: z.string().optional(),
  fields: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]))
    .optional(),
  unparsed: z.literal(true).optional(),
  nothing: z.literal(true).optional(),
});

export const descriptionSchema = z
  .strictObject({
    format: z.string().max(64).regex(NAME, "must be words in lower case, joined by -"),
    about: text.describe("a sentence for the list of formats"),
    devices: z.array(text).default([]).describe("names of devices and programs, for the table of devices"),
    page: z.string().regex(NAME).optional().describe("the page in docs/devices"),
    source: z.enum(SOURCE_KINDS).default("network"),
    match: z
      .strictObject({
        programs: words.optional(),
        begins: words.optional(),
        contains: words.optional(),
      })
      .refine(({ programs, begins, contains }) => (programs ?? begins ?? contains) !== undefined, "must not be empty"),
    owns_programs: z.boolean().default(false),
    header: templates.optional(),
    structured_data: text
      .optional()
      .describe("how the ids of RFC 5424 elements begin whose parameters are values; message_id is another value"),
    pairs: z
      .strictObject({
        assign: z.string().min(1).max(3).default("="),
        separator: z.string().length(1).default(" "),
        quote: z.string().length(1).default('"'),
      })
      .optional(),
    columns: z
      .strictObject({
        separator: z.string().length(1).default(","),
        groups: z.array(columnGroup).min(1).max(10),
        open: z.boolean().default(false).describe("further columns may follow, which are not read"),
      })
      .optional(),
    json: z.literal(true).optional(),
    parts: z
      .record(text, templates)
      .default({})
      .describe("templates that divide a value, such as `address:port`; one that matches none stays whole"),
    absent: z.array(z.string()).default([]).describe("words for a value that is missing"),
    fields: z.record(text, z.union([fieldName.transform((name) => [name]), z.array(fieldName)])).default({}),
    words: z
      .record(text, z.record(scalar, z.string()))
      .default({})
      .describe("our words for words of a value; an empty one means that the value is missing"),
    keep: z.boolean().default(true).describe("values without a field name are stored under their own"),
    time: words.optional().describe("values, or templates of values, that make the time"),
    events: z.array(described).min(1).max(EVENTS_MAX),
    tests: z.array(lineTest).min(1).max(TESTS_MAX),
  })
  .superRefine(({ pairs, columns, json, events }, context) => {
    const structures = [pairs, columns, json].filter((structure) => structure !== undefined);
    if (structures.length > 1) {
      context.addIssue({ code: "custom", message: "pairs, columns and json exclude each other" });
    }
    for (const [index, event] of events.entries()) {
      if (event.nothing) continue;
      if (event.type === undefined || event.severity === undefined) {
        context.addIssue({
          code: "custom",
          path: ["events", index],
          message: "needs type and severity, or nothing: true",
        });
      }
    }
  });

export type FormatDescription = z.output<typeof descriptionSchema>;
export type EventDescription = FormatDescription["events"][number];
export type DescribedTest = z.output<typeof valueTest>;
export type LineTest = z.output<typeof lineTest>;
