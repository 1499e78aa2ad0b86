import { InvalidArgumentError, type Command } from "commander";
import { CLIENT_VARIABLES, type LoadedSettings } from "../config/config.ts";
import { openSearchOf, postgresOf } from "../config/settings.ts";
import type { Rule } from "../model/rule.ts";
import type {
  AddExceptions,
  CreateRules,
  ImportFile,
  ImportFormat,
  ImportRequest,
  ImportResult,
} from "../sigma/rule-import.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import { formatOf, MAPPING_OPTION, mappingFailure, readRuleFiles, readText } from "./rule-files.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { formatTable, plain, print, printJson } from "./terminal.ts";

const AUTHOR = "command line";
const ANSWER_MS_MAX = 300_000;
/** Rules with the same remark that are listed one by one; more share a row. */
const SAME_REMARKS_MAX = 5;

interface ImportOptions {
  format?: ImportFormat;
  mapping?: string;
  dryRun?: true;
  disabled?: true;
  url?: string;
  key?: string;
  json?: true;
}

export function addRulesImport(rules: Command, paths: string): void {
  const command = rules
    .command("import")
    .argument("<paths...>", paths)
    .description("create rules from Sigma rules or rule files")
    .option(...MAPPING_OPTION)
    .option("--format <format>", "sigma or tocsin; by default detected per file", readFormat)
    .option("--dry-run", "report the result without creating rules")
    .option("--disabled", "create the rules disabled")
    .option(
      "--url <address>",
      `import through a running service, such as http://127.0.0.1:8080 (or ${CLIENT_VARIABLES.url})`,
    )
    .option("--key <key>", `its API key, with the scope rules:write (or ${CLIENT_VARIABLES.key})`)
    .option("--json", "as one JSON object");
  addSettingFlags(command, ["data_dir", "platform", "timezone", "index_prefix"])
    .addHelpText(
      "after",
      `
Writes to the data folder directly while no service runs on it; otherwise use --url and --key. Rules are independent: a
rule that cannot be imported is listed with its location and the reason, and the others are created.

Examples:
  tocsin rules import sigma/rules/windows/process_creation --dry-run
  tocsin rules import sigma/rules --mapping mapping.yaml --disabled
  tocsin rules import site-rules/ --url http://127.0.0.1:8080 --key tsn_...

Exit codes: 0 at least one rule was imported, ${EXIT_FAILED} none was, ${EXIT_WRONG_USE} wrong usage.`,
    )
    .action(async (given: string[], options: ImportOptions) => {
      const loaded = requireSettings(command);
      const question = askedFor(given, options, loaded);
      const url = options.url ?? process.env[CLIENT_VARIABLES.url];
      const result = url ? await importByService(question, options, url) : await importHere(question, options, loaded);
      if (result.imported.length === 0 && result.refused.length > 0) process.exitCode = EXIT_FAILED;
      if (options.json) printJson(result);
      else show(result, options);
    });
}

function askedFor(paths: readonly string[], options: ImportOptions, { settings }: LoadedSettings): ImportRequest {
  const files = readRuleFiles(paths).map((file) => ({ ...file, format: options.format ?? formatOf(file.content) }));
  const { platform, timezone } = settings;
  const mapping = options.mapping === undefined ? undefined : readText(options.mapping);
  return { files, mapping, enabled: !options.disabled, platform, timezone };
}

function readFormat(text: string): ImportFormat {
  if (text === "sigma" || text === "tocsin") return text;
  throw new InvalidArgumentError("Allowed: sigma, tocsin.");
}

async function importHere(
  question: ImportRequest,
  { dryRun }: ImportOptions,
  loaded: LoadedSettings,
): Promise<ImportResult> {
  const { readRules, makeExceptions, makeRules, remarksOnTaken, storedRules } = await import("../sigma/rule-import.ts");
  const importInto = async ({ rules, create, except }: ImportTarget) => {
    const read = readRules({ ...question, stored: storedRules(rules) });
    if ("mappingFaults" in read) throw mappingFailure(read.mappingFaults);
    const made = await makeRules(read.rules, create);
    const excepted = await makeExceptions(read.exceptions, except);
    const refused = [...read.refused, ...made.refused, ...excepted.refused];
    return { imported: made.imported, refused, remarks: remarksOnTaken(read.remarks, refused) };
  };
  return dryRun ? importInto(await dryRunHere(loaded)) : withRulebook(loaded, importInto);
}

/** The target of an import: a rulebook, or its rehearsal. */
interface ImportTarget {
  readonly rules: readonly Pick<Rule, "id" | "origin">[];
  readonly create: CreateRules;
  readonly except: AddExceptions;
}

/** Reads only: works beside a running service, and without a data folder. */
async function dryRunHere({ settings }: LoadedSettings): Promise<ImportTarget> {
  const { readStoredRules } = await import("../store/open-store.ts");
  const { dryRunCreate } = await import("../detection/rules/rulebook.ts");
  const { loadBuiltinRules } = await import("../detection/rules/builtin.ts");
  const { dataDir, platform, timezone } = settings;
  const builtins = loadBuiltinRules({ platform, timezone });
  try {
    const rules = await readStoredRules({ dataDir, postgres: postgresOf(settings) });
    const names = [...builtins, ...rules].map(({ name }) => name);
    return { rules, create: dryRunCreate(names), except: () => Promise.resolve([]) };
  } catch (error) {
    throw explainFailure(error, settings);
  }
}

async function withRulebook<Value>(
  { settings }: LoadedSettings,
  work: (target: ImportTarget) => Promise<Value>,
): Promise<Value> {
  const { dataDir, platform, indexPrefix, timezone } = settings;
  const { openStore } = await import("../store/open-store.ts");
  const { Registry } = await import("prom-client");
  const { openRulebook } = await import("../detection/rules/rulebook.ts");
  const { settledPlace } = await import("../detection/settled-place.ts");
  const { loadBuiltinRules } = await import("../detection/rules/builtin.ts");
  const { createLog } = await import("../lib/log.ts");
  const log = createLog({ level: "error", destination: process.stderr });
  try {
    const store = await openStore({
      dataDir,
      platform,
      indexPrefix,
      postgres: postgresOf(settings),
      opensearch: openSearchOf(settings),
      registry: new Registry(),
      log,
    });
    try {
      const rulebook = await openRulebook({
        store: store.rules,
        builtins: loadBuiltinRules({ platform, timezone }),
        // A new rule applies to events after the detector's position.
        place: () => (store.shared ? settledPlace(store) : store.detection.position()),
      });
      return await work({
        rules: rulebook.all(),
        create: (inputs) => rulebook.createMany(inputs, AUTHOR),
        except: (wanted) => rulebook.addExceptions(wanted, AUTHOR),
      });
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!["DataFolderInUse", "DatabaseInUse"].includes((error as Error)?.name)) throw explainFailure(error, settings);
    const message = `${(error as Error).message}\nWhile a service runs, import through it: --url <address> --key <key>`;
    throw new CommandFailure(message, EXIT_FAILED, { cause: error });
  }
}

/** Sends all files as one text, because rules may refer to rules of other files. */
async function importByService(
  question: ImportRequest,
  { key: given, dryRun }: ImportOptions,
  url: string,
): Promise<ImportResult> {
  const key = given ?? process.env[CLIENT_VARIABLES.key];
  if (!key)
    throw new CommandFailure(`A running service needs a key: --key, or ${CLIENT_VARIABLES.key}.`, EXIT_WRONG_USE);
  const results: ImportResult[] = [];
  for (const format of ["sigma", "tocsin"] as const) {
    const files = question.files.filter((file) => file.format === format);
    if (files.length === 0) continue;
    const { content, nameLine } = joinFiles(files);
    const { mapping, enabled } = question;
    const body = { format, content, enabled, dry_run: dryRun === true, ...(mapping !== undefined && { mapping }) };
    const result = await post(url, key, body);
    const placed = <Item extends { readonly place: string }>(item: Item) => ({ ...item, place: nameLine(item.place) });
    results.push({ ...result, refused: result.refused.map(placed), remarks: result.remarks.map(placed) });
  }
  return {
    imported: results.flatMap(({ imported }) => imported),
    refused: results.flatMap(({ refused }) => refused),
    remarks: results.flatMap(({ remarks }) => remarks),
  };
}

function joinFiles(files: readonly ImportFile[]): { content: string; nameLine(place: string): string } {
  const starts: { name: string; line: number }[] = [];
  let line = 1;
  const texts = files.map(({ name, content }) => {
    starts.push({ name, line: line + 1 });
    const text = `---\n${content}\n`;
    line += text.split("\n").length - 1;
    return text;
  });
  const nameLine = (place: string) => {
    const at = Number(/:(\d+)$/.exec(place)?.[1] ?? Number.NaN);
    const start = starts.findLast((file) => file.line <= at);
    return start ? `${start.name}:${at - start.line + 1}` : place;
  };
  return { content: texts.join(""), nameLine };
}

async function post(url: string, key: string, body: object): Promise<ImportResult> {
  let answer: Response;
  try {
    answer = await fetch(new URL("/v1/rules/import", url), {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (error) {
    throw new CommandFailure(`No service answers at ${url}.\nIs it running, and is the address right?`, EXIT_FAILED, {
      cause: error,
    });
  }
  const content = (await answer.json().catch(() => undefined)) as
    | { data?: ImportResult; error?: { message: string; details: { field: string; message: string }[] } }
    | undefined;
  if (answer.ok && content?.data) return content.data;
  const { message = `status ${answer.status}`, details = [] } = content?.error ?? {};
  // The message covers a single fault.
  const lines = details.length > 1 ? details.map((fault) => `  ${plain(`${fault.field}: ${fault.message}`)}`) : [];
  throw new CommandFailure([`The service refused: ${plain(message)}`, ...lines].join("\n"));
}

function show({ imported, refused, remarks }: ImportResult, { dryRun }: ImportOptions): void {
  if (remarks.length > 0) {
    print(formatTable(["imported with a remark", "place", "remark"], remarkRows(remarks)));
    print("");
  }
  if (refused.length > 0) {
    const rows = refused.flatMap(({ name, place, reasons }) =>
      reasons.map((reason) => [plain(name), plain(place), plain(reason)]),
    );
    print(formatTable(["refused", "place", "reason"], rows));
    print("");
  }
  const verb = dryRun ? "would be created" : "created";
  print(
    `${countOf(imported.length, "rule")} ${verb}, ${refused.length} refused, ${countOf(remarks.length, "remark")}.`,
  );
}

/** Combines equal remarks on many rules into one row. */
function remarkRows(remarks: ImportResult["remarks"]): string[][] {
  return [...Map.groupBy(remarks, ({ message }) => message).values()].flatMap((same) => {
    const rows = same.map(({ name, place, message }) => [plain(name), plain(place), plain(message)]);
    const [[, place, message] = []] = rows;
    return same.length <= SAME_REMARKS_MAX ? rows : [[`${same.length} rules`, `${place!}, ...`, message!]];
  });
}
