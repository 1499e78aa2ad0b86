import { z } from "zod";
import type { Settings } from "../config/settings.ts";
import type { Fault } from "../lib/fault.ts";
import { Thread } from "../lib/thread.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Rule } from "../model/rule.ts";
import type { RuleInput } from "../model/rule-schema.ts";
import type { ImportApi } from "../sigma/import-thread.ts";
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
  type ImportRequest,
  type ImportResult,
  type ImportedRules,
} from "../sigma/rule-import.ts";
import { JSON_TYPE } from "./body.ts";
import { checkBody, endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { withDeadline } from "./deadline.ts";
import { KeySlots } from "./key-slots.ts";
import { invalid, toProblem } from "./problems.ts";

/** Imports in flight, running or queued; more are refused. */
const IMPORTS_MAX = 4;
const IMPORTS_PER_KEY_MAX = 2;
const RETRY_SECONDS = 10;
/** The deadline for parsing; tens of thousands of rules take seconds. */
const PARSE_MS_MAX = 60_000;
/** Rules created at once; other requests run between the chunks. */
const CHUNK_RULES = 100;
/** The heap of the parser thread. Parsed YAML takes many times the size of its text. */
const THREAD_HEAP_MB = 1024;
const FILE_NAME = "content";
const MAPPING_CHARACTERS_MAX = 1024 * 1024;

export interface ImportEndpointOptions {
  readonly rulebook: {
    createMany(inputs: readonly RuleInput[], author: string): ReturnType<CreateRules>;
    createDryRun(): CreateRules;
    all(): readonly Rule[];
    addExceptions(exceptions: FilterExceptions["wanted"], author: string): Promise<readonly string[]>;
  };
  readonly settings: Pick<Settings, "platform" | "timezone" | "bodyLimits">;
}

const bodySchema = z
  .strictObject({
    format: z.enum(IMPORT_FORMATS),
    content: z.string().min(1).describe("YAML with one or several documents"),
    mapping: z
      .string()
      .max(MAPPING_CHARACTERS_MAX)
      .optional()
      .describe(
        "YAML, only for Sigma: maps log sources and fields to those of events; takes precedence over the default mapping",
      ),
    enabled: z.boolean().default(true).describe("false: create the rules disabled"),
    dry_run: z.boolean().default(false).describe("true: report the result without creating rules"),
  })
  .meta({ id: "RuleImport" });

const resultSchema = z
  .object({
    imported: z.array(z.object({ id: z.string().nullable().describe("null in a dry run"), name: z.string() })),
    refused: z.array(
      z.object({
        name: z.string().describe("the title of the Sigma rule, or the name of the rule"),
        place: z.string().describe("the first line of the rule, such as `content:12`"),
        reasons: z
          .array(z.string())
          .describe("each with its path in the rule, such as `detection.selection.a|re: not a pattern`"),
      }),
    ),
    remarks: z
      .array(z.object({ name: z.string(), place: z.string(), message: z.string() }))
      .describe("deviations of created rules from their source"),
  })
  .meta({ id: "RuleImportResult" });

const BODY_EXAMPLE = {
  format: "sigma",
  content:
    "title: Suspicious tool\nlevel: high\nlogsource: { category: process_creation }\n" +
    "detection:\n  selection: { Image|endswith: '\\tool.exe' }\n  condition: selection\n",
};

export function importEndpoints({ rulebook, settings }: ImportEndpointOptions): Endpoint[] {
  // An import may use a core for seconds, so only one runs at a time.
  const queue = new SerialQueue();
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
      summary: "Import rules from Sigma or rule files",
      description:
        "Rules are imported independently: `refused` lists each rule that was not created with its location and reasons, `remarks` " +
        "the deviations of those that were. A rule whose name already exists is refused. One import runs at a time. At most " +
        `${IMPORTS_MAX} may be in flight (503 past that), ${IMPORTS_PER_KEY_MAX} per key (429 past that). See docs/rules.md.`,
      scopes: ["rules:write"],
      body: bodySchema,
      bodyTypes: [JSON_TYPE],
      handlesFaults: true,
      example: BODY_EXAMPLE,
      responses: {
        200: {
          description: "the imported and the refused rules",
          data: resultSchema,
          example: {
            imported: [{ id: "rule_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", name: "sigma.suspicious_tool" }],
            refused: [],
            remarks: [],
          },
        },
      },
      handle: async ({ key, readBody, request, faults: found }) => {
        const body = await readBody({ bytesMax: bodyLimits.batchBytes, types: [JSON_TYPE] });
        const faults = [...found];
        const parsed = checkBody(bodySchema, body, faults);
        if (!parsed || faults.length > 0) throw invalid(faults);
        const { format, content, mapping, enabled, dry_run } = parsed;
        const files = [{ name: FILE_NAME, content, format }];
        // Started when the import runs, because the import before it may take names.
        let dryRun: CreateRules | undefined;
        const create: CreateRules = dry_run
          ? (inputs) => (dryRun ??= rulebook.createDryRun())(inputs)
          : (inputs) => rulebook.createMany(inputs, key.name);
        const except: AddExceptions = dry_run
          ? () => Promise.resolve([])
          : (exceptions) => rulebook.addExceptions(exceptions, key.name);
        const input = () => ({ files, mapping, enabled, platform, timezone, stored: storedRules(rulebook.all()) });
        const imported = await slots.hold(key, () =>
          abortOnDisconnect(request.raw.socket, (signal) =>
            queue.take(() => importInThread({ input, create, except, signal })),
          ),
        );
        return data(imported);
      },
    }),
  ];
}

interface ImportJob {
  /** Evaluated when the import runs, because the import before it may create rules that filters refer to. */
  readonly input: () => ImportRequest;
  readonly create: CreateRules;
  readonly except: AddExceptions;
  /** Has no effect once rules are being created, because created rules must be reported. */
  readonly signal: AbortSignal;
  readonly parseMsMax?: number;
}

export async function importInThread(job: ImportJob): Promise<ImportResult> {
  const { input, create, except, signal, parseMsMax = PARSE_MS_MAX } = job;
  signal.throwIfAborted();
  const message = `takes more than ${parseMsMax / 1000} s to parse; send it in parts`;
  const late = () => invalid([{ field: "content", message }]);
  const limits = { maxOldGenerationSizeMb: THREAD_HEAP_MB };
  // If the thread dies, the pending call rejects.
  const thread = new Thread<ImportApi>(
    new URL("../sigma/import-thread.ts", import.meta.url),
    {},
    () => undefined,
    limits,
  );
  try {
    const read = await withDeadline({ msMax: parseMsMax, signal, late }, thread.call("read", input()));
    if ("mappingFaults" in read) throw invalid(read.mappingFaults.map(describeMappingFault));
    const imported: ImportResult["imported"][number][] = [];
    const refused = [...read.refused];
    for (let from = 0; from < read.count; from += CHUNK_RULES) {
      const rules = await thread.call("take", from, from + CHUNK_RULES);
      const chunk = await makeRules(rules, create).catch((error: unknown) =>
        notImported(rules, error, imported.length),
      );
      imported.push(...chunk.imported);
      refused.push(...chunk.refused);
    }
    refused.push(...(await makeExceptions(read.exceptions, except)).refused);
    return { imported, refused, remarks: remarksOnTaken(read.remarks, refused) };
  } finally {
    await thread.end();
  }
}

/** Once some rules are created, the response must report them, even if the store refuses the others. */
function notImported(
  rules: ImportedRules["rules"],
  error: unknown,
  createdCount: number,
): Pick<ImportResult, "imported" | "refused"> {
  const problem = toProblem(error);
  if (!problem || createdCount === 0) throw error;
  const reasons = [problem.message];
  return { imported: [], refused: rules.map(({ input, place }) => ({ name: input.name, place, reasons })) };
}

function describeMappingFault({ line, path, message }: MappingFault): Fault {
  return { field: "mapping", message: `line ${line}: ${path === "" ? "" : `${path}: `}${message}` };
}
