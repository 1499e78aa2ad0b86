import { z } from "zod";
import { DURATION, parseDuration } from "../lib/duration.ts";
import { withSizeGuard } from "../lib/size-guard.ts";
import { DAY_MS, parseTime } from "../lib/time.ts";
import type { JsonObject } from "./event.ts";
import { classSchema, severitySchema, typeSchema } from "./event-schema.ts";
import { parseOffset, TEST_EVENTS_MAX, TEST_SPAN_MS_MAX, TESTS_MAX, type RuleTest } from "./rule-test.ts";

// The schema of the tests of a rule. Values stay as they were written, so that a test reads back as it was sent.

/** Characters of all tests of a rule as JSON. */
const TESTS_CHARACTERS_MAX = 64 * 1024;
const NAME_CHARACTERS_MAX = 200;
/** Times of events must keep four digits of year. */
const TIME_MS_MAX = Date.UTC(9000, 0);
const DAYS_MAX = TEST_SPAN_MS_MAX / DAY_MS;

const isSpan = (ms: number | undefined) => ms !== undefined && ms <= TEST_SPAN_MS_MAX;
const isTime = (text: string) => (parseTime(text) ?? Infinity) < TIME_MS_MAX;

const durationSchema = z
  .string()
  .refine((text) => isSpan(parseDuration(text)), `must be a duration such as 30s, 5m, 1h or 2d, at most ${DAYS_MAX}d`)
  .meta({ pattern: DURATION.source });
const startSchema = z
  .string()
  .refine(isTime, "must be an ISO 8601 time such as 2026-11-02T12:00:00Z, before the year 9000");
const atSchema = z
  .string()
  .refine(
    (text) => isTime(text) || isSpan(parseOffset(text)),
    `must be an offset such as +90s, at most +${DAYS_MAX}d, or an ISO 8601 time`,
  );
const jsonSchema = z
  .record(z.string(), z.unknown())
  .refine(isJson, "must not hold a number that JSON cannot express") as unknown as z.ZodType<JsonObject>;

/** YAML knows infinite numbers; JSON does not. */
function isJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isJson);
}

const eventSchema = z
  .strictObject({
    type: typeSchema,
    source: z.string().optional().describe("default: that of the rule, or custom"),
    severity: severitySchema.optional().describe("default: info"),
    class: classSchema.optional().describe("default: that of the type"),
    at: atSchema.optional().describe("offset from the start such as `+90s`, or a time; default: `+0s`"),
    raw: jsonSchema.optional().describe("`{n}` in a text is the number of the repetition"),
    enrichment: jsonSchema.optional(),
    repeat: z.int().min(1).max(TEST_EVENTS_MAX).optional().describe("default: 1"),
    every: durationSchema.optional().describe("time between repetitions; default: none"),
  })
  .superRefine(({ repeat = 1, every }, context) => {
    if (every === undefined) return;
    const fault = (message: string) => context.addIssue({ code: "custom", path: ["every"], message });
    if (repeat === 1) fault("needs repeat");
    else if (!isSpan((repeat - 1) * (parseDuration(every) ?? 0)))
      fault(`the repetitions must span at most ${DAYS_MAX}d`);
  })
  .meta({ id: "RuleTestEvent" });

const testSchema = z
  .strictObject({
    name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX).describe("what the test shows"),
    start: startSchema.optional().describe("time of the first events; default: 2026-11-02T12:00:00Z, a Monday"),
    events: z.array(eventSchema).max(TEST_EVENTS_MAX).superRefine(refuseTooMany).describe("in order of arrival"),
    wait: durationSchema.optional().describe("time without events after the last one"),
    alerts: z.int().min(0).describe("expected number of alerts after deduplication"),
    event_count: z.int().min(0).optional().describe("expected number of events in all of them"),
    title: z.string().optional().describe("expected title of the first alert"),
  })
  .meta({ id: "RuleTest" }) satisfies z.ZodType<RuleTest>;

/** The sources of a platform are checked beside the schemas, which documents refer to by name: there is one of each. */
export function ruleTestsSchema(sources: readonly string[]) {
  const tests = z
    .array(testSchema)
    .max(TESTS_MAX)
    .superRefine((all, context) => refuseOtherSources(all, sources, context));
  return withSizeGuard(tests, refuseSize).describe(
    `events and the alerts that they must raise, see docs/rules.md; at most ${TESTS_MAX} tests and ${TESTS_CHARACTERS_MAX / 1024} KiB`,
  );
}

function refuseOtherSources(tests: readonly RuleTest[], sources: readonly string[], context: z.RefinementCtx): void {
  for (const [test, { events }] of tests.entries()) {
    for (const [event, { source }] of events.entries()) {
      if (source === undefined || sources.includes(source)) continue;
      const path = [test, "events", event, "source"];
      context.addIssue({ code: "custom", path, message: `must be one of ${sources.join(", ")}` });
    }
  }
}

function refuseTooMany(events: readonly { readonly repeat?: number | undefined }[], context: z.RefinementCtx): void {
  const count = events.reduce((sum, { repeat = 1 }) => sum + repeat, 0);
  if (count <= TEST_EVENTS_MAX) return;
  context.addIssue({ code: "custom", message: `must be at most ${TEST_EVENTS_MAX} events, repetitions included` });
}

function refuseSize(tests: unknown): string | undefined {
  if (tests === undefined || JSON.stringify(tests).length <= TESTS_CHARACTERS_MAX) return undefined;
  return `must be at most ${TESTS_CHARACTERS_MAX / 1024} KiB of JSON in all`;
}
