import { z } from "zod";
import type { Settings } from "../config/config.ts";
import type { Fault } from "../lib/fault.ts";
import { Thread } from "../lib/thread.ts";
import { Turns } from "../lib/turns.ts";
import type { Rule, RuleInput } from "../model/rule.ts";
import type { ImportApi } from "../sigma/worker.ts";
import type { MappingFault } from "../sigma/mapping.ts";
import {
  IMPORT_FORMATS,
  makeExceptions,
  makeRules,
  remarksOnTaken,
  storedRules,
  type AddExceptions,
  type CreateRules,
  type FilterExceptions,
  type ImportQuestion,
  type ImportResult,
  type ReadRules,
} from "../sigma/rule-import.ts";
import { JSON_TYPE } from "./body.ts";
import { checkBody, data, endpoint, type Endpoint } from "./endpoint.ts";
import { untilHangUp } from "./hang-up.ts";
import { KeySlots } from "./key-slots.ts";
import { invalid, toProblem } from "./problems.ts";

/** Imports that are under way or wait for another one to end; more are asked to come back. */
const IMPORTS_MAX = 4;
const IMPORTS_PER_KEY_MAX = 2;
const RETRY_SECONDS = 10;
/** For reading what is to be imported: tens of thousands of rules take seconds. */
const READING_MS_MAX = 60_000;
/** Rules that are made at once: others get their turn between the lots. */
const LOT_RULES = 100;
/** Of the thread that reads: YAML takes many times its own size. */
const THREAD_HEAP_MB = 1024;
const FILE_NAME = "content";
const MAPPING_CHARACTERS_MAX = 1024 * 1024;

export interface ImportEndpointOptions {
  readonly rulebook: {
    createMany(inputs: readonly RuleInput[], author: string): ReturnType<CreateRules>;
    rehearsal(): CreateRules;
    all(): readonly Rule[];
    addExceptions(wanted: FilterExceptions["wanted"], author: string): Promise<readonly string[]>;
  };
  readonly settings: Pick<Settings, "platform" | "timezone" | "bodyLimits">;
}

const bodySchema = z
  .strictObject({
    format: z.enum(IMPORT_FORMATS),
    content: z.string().min(1).describe("YAML: one or several documents"),
    mapping: z
      .string()
      .max(MAPPING_CHARACTERS_MAX)
      .optional()
      .describe("for Sigma, YAML: where log sources and fields are in our events; goes before the default one"),
    enabled: z.boolean().default(true).describe("false: the rules are made, but not enabled"),
    dry_run: z.boolean().default(false).describe("only say what would be made"),
  })
  .meta({ id: "RuleImport" });

const answerSchema = z
  .object({
    imported: z.array(z.object({ id: z.string().nullable().describe("null on a dry run"), name: z.string() })),
    refused: z.array(
      z.object({
        name: z.string().describe("the title of the Sigma rule, or the name of the rule"),
        place: z.string().describe("the line at which the rule begins: content:12"),
        reasons: z
          .array(z.string())
          .describe("each with its place in the rule: detection.selection.a|re: not a pattern"),
      }),
    ),
    remarks: z
      .array(z.object({ name: z.string(), place: z.string(), message: z.string() }))
      .describe("what is a little different from what the rule said"),
  })
  .meta({ id: "RuleImportResult" });

const BODY_EXAMPLE = {
  format: "sigma",
  content:
    "title: Odd tool\nlevel: high\nlogsource: { category: process_creation }\n" +
    "detection:\n  selection: { Image|endswith: '\\odd.exe' }\n  condition: selection\n",
};

/** `POST /v1/rules/import`. */
export function importEndpoints({ rulebook, settings }: ImportEndpointOptions): Endpoint[] {
  // An import may take a core for seconds; two would take both from everybody else.
  const turns = new Turns();
  const slots = new KeySlots({
    what: "imports",
    max: IMPORTS_MAX,
    perKeyMax: IMPORTS_PER_KEY_MAX,
    retrySeconds: RETRY_SECONDS,
  });
  const { platform, timezone, bodyLimits } = settings;
  return [
    endpoint({
      method: "POST",
      path: "/v1/rules/import",
      operationId: "importRules",
      tag: "Rules",
      summary: "Make rules out of Sigma or of rule files",
      about:
        "Each rule stands for itself: `refused` says of each that was not made why, with its place, `remarks` what is " +
        "different about those that were. A name that is taken is a reason to refuse. One import runs at a time: " +
        `${IMPORTS_MAX} may be under way or wait, and ${IMPORTS_PER_KEY_MAX} of one key: one more is a 503, or a 429. ` +
        "See docs/rules.md.",
      scopes: ["rules:write"],
      body: bodySchema,
      bodyTypes: [JSON_TYPE],
      refusesFaults: true,
      example: BODY_EXAMPLE,
      answers: {
        200: {
          about: "what was made and what was not",
          data: answerSchema,
          example: {
            imported: [{ id: "rule_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", name: "sigma.odd_tool" }],
            refused: [],
            remarks: [],
          },
        },
      },
      handle: async ({ key, readBody, request, faults: found }) => {
        const body = await readBody({ bytesMax: bodyLimits.batchBytes, types: [JSON_TYPE] });
        const faults = [...found];
        const question = checkBody(bodySchema, body, faults);
        if (!question || faults.length > 0) throw invalid(faults);
        const { format, content, mapping, enabled, dry_run } = question;
        const files = [{ name: FILE_NAME, content, format }];
        // Begun when it is its turn: the import before it may take names.
        let rehearsal: CreateRules | undefined;
        const create: CreateRules = dry_run
          ? (inputs) => (rehearsal ??= rulebook.rehearsal())(inputs)
          : (inputs) => rulebook.createMany(inputs, key.name);
        const except: AddExceptions = dry_run
          ? () => Promise.resolve([])
          : (wanted) => rulebook.addExceptions(wanted, key.name);
        const asked = () => ({ files, mapping, enabled, platform, timezone, stored: storedRules(rulebook.all()) });
        const imported = await slots.hold(key, () =>
          untilHangUp(request.raw.socket, (signal) =>
            turns.take(() => importInThread({ question: asked, create, except, signal })),
          ),
        );
        return data(imported);
      },
    }),
  ];
}

interface Import {
  /** Asked for when it is its turn: the import before it may make rules that filters are about. */
  readonly question: () => ImportQuestion;
  readonly create: CreateRules;
  readonly except: AddExceptions;
  /** Heeded until rules are made: from then on those that are told of have to be there. */
  readonly signal: AbortSignal;
  readonly readingMsMax?: number;
}

export async function importInThread(asked: Import): Promise<ImportResult> {
  const { question, create, except, signal, readingMsMax = READING_MS_MAX } = asked;
  signal.throwIfAborted();
  const limits = { maxOldGenerationSizeMb: THREAD_HEAP_MB };
  // Whoever waits for its answer hears of its death.
  const thread = new Thread<ImportApi>(new URL("../sigma/worker.ts", import.meta.url), {}, () => undefined, limits);
  try {
    const read = await within(readingMsMax, signal, thread.call("read", question()));
    if ("mappingFaults" in read) throw invalid(read.mappingFaults.map(describeMappingFault));
    const imported: ImportResult["imported"][number][] = [];
    const refused = [...read.refused];
    for (let from = 0; from < read.count; from += LOT_RULES) {
      const rules = await thread.call("take", from, from + LOT_RULES);
      const made = await makeRules(rules, create).catch((error: unknown) => notMade(rules, error, imported.length));
      imported.push(...made.imported);
      refused.push(...made.refused);
    }
    refused.push(...(await makeExceptions(read.exceptions, except)).refused);
    return { imported, refused, remarks: remarksOnTaken(read.remarks, refused) };
  } finally {
    await thread.end();
  }
}

/** Fails when it takes too long, or when nobody waits for it any more; what is under way is then to be ended. */
async function within<Value>(msMax: number, signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const message = `takes more than ${msMax / 1000} s to read: send it in parts`;
  const timer = setTimeout(() => reject(invalid([{ field: "content", message }])), msMax);
  const stop = () => reject(signal.reason as Error);
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Once rules have been made, whoever asked has to hear of them, even where the store takes no more. */
function notMade(rules: ReadRules["rules"], error: unknown, made: number): Pick<ImportResult, "imported" | "refused"> {
  const problem = toProblem(error);
  if (!problem || made === 0) throw error;
  const reasons = [problem.message];
  return { imported: [], refused: rules.map(({ input, place }) => ({ name: input.name, place, reasons })) };
}

function describeMappingFault({ line, path, message }: MappingFault): Fault {
  return { field: "mapping", message: `line ${line}: ${path === "" ? "" : `${path}: `}${message}` };
}
