import type { Command } from "commander";
import type { Hint } from "../detection/rules/lint.ts";
import type { RuleDocument, RuleFile, RuleFileFault } from "../detection/rules/rule-file.ts";
import { sourceNames } from "../model/event.ts";
import { EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { formatOf, MAPPING_OPTION, mappingFailure, readRuleFiles, readText } from "./rule-files.ts";
import { addRulesImport } from "./rules-import-command.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { formatTable, plain, print, printJson } from "./terminal.ts";

const HELP = `
A rule file is YAML: a rule as POST /v1/rules takes it, with tests beside it. docs/rules.md has the language.

Examples:
  tocsin rules test site-rules/
  tocsin rules lint site-rules/*.yaml
  tocsin rules import sigma/rules/windows --mapping mapping.yaml --dry-run
  tocsin rules import site-rules/ --url http://127.0.0.1:8080 --key tsn_...

Exit codes: 0 nothing wrong, ${EXIT_FAILED} a test failed, a file has faults or nothing could be imported, ${EXIT_WRONG_USE} wrong usage.`;

const PATHS = "files, or folders with .yaml and .yml files in them";

export function addRules(program: Command): void {
  const rules = program
    .command("rules")
    .description("test, lint and import detection rules")
    .addHelpText("after", HELP);
  addTest(rules);
  addLint(rules);
  addRulesImport(rules, PATHS);
}

interface ReadRuleFiles {
  readonly documents: readonly RuleDocument[];
  readonly faults: readonly RuleFileFault[];
  readonly files: readonly RuleFile[];
}

async function readDocuments(command: Command, paths: readonly string[]): Promise<ReadRuleFiles> {
  const { settings } = requireSettings(command);
  const { ruleFileParser } = await import("../detection/rules/rule-file.ts");
  const files = readRuleFiles(paths);
  const parsed = files.filter(({ content }) => formatOf(content) === "tocsin").map(ruleFileParser(settings));
  const documents = parsed.flatMap((file) => file.documents);
  return { documents, faults: [...parsed.flatMap((file) => file.faults), ...repeatedNames(documents)], files };
}

interface LintHint extends Hint {
  readonly rule: string;
  readonly file: string;
  readonly line: number;
}

/** Lints Sigma rules as the import reads them. */
async function lintSigma(
  command: Command,
  files: readonly RuleFile[],
  mappingPath: string | undefined,
): Promise<{ rules: number; faults: RuleFileFault[]; hints: LintHint[] }> {
  const { settings } = requireSettings(command);
  const { importSigma } = await import("../sigma/import.ts");
  const { readMapping } = await import("../sigma/rule-import.ts");
  const read = mappingPath === undefined ? undefined : readMapping(readText(mappingPath), settings.platform);
  if (read && "faults" in read) throw mappingFailure(read.faults);
  const sigma = files.filter(({ content }) => formatOf(content) === "sigma");
  const outcomes = importSigma(sigma, { mapping: read?.mapping, sources: sourceNames(settings.platform) });
  const located = (
    { file, line, title }: (typeof outcomes)[number],
    { place, message }: { place: string; message: string },
  ) => ({ file, line, rule: title, path: place, message });
  return {
    rules: outcomes.length,
    faults: outcomes.flatMap((outcome) => outcome.reasons.map((note) => located(outcome, note))),
    hints: outcomes.flatMap((outcome) => outcome.remarks.map((note) => located(outcome, note))),
  };
}

function repeatedNames(documents: readonly RuleDocument[]): RuleFileFault[] {
  const known = new Map<string, RuleDocument>();
  return documents.flatMap((document) => {
    const { file, line, input } = document;
    const first = known.get(input.name);
    if (!first) known.set(input.name, document);
    return first
      ? [
          {
            file,
            line,
            path: "name",
            message: `${input.name} is also the name of the rule at ${first.file}:${first.line}`,
          },
        ]
      : [];
  });
}

function addTest(rules: Command): void {
  const command = rules
    .command("test")
    .argument("<paths...>", PATHS)
    .description("run the tests in rule files through the engine that the service uses")
    .option("--json", "as one JSON object");
  addSettingFlags(command, ["platform", "timezone"])
    .addHelpText(
      "after",
      "\nExamples:\n  tocsin rules test site-rules/\n  tocsin rules test doors.yaml --timezone Europe/Berlin",
    )
    .action(async (paths: string[], { json }: { json?: true }) => {
      const { documents, faults, files } = await readDocuments(command, paths);
      const { runFileTests } = await import("../detection/rules/rule-file-tests.ts");
      const outcomes = runFileTests(documents);
      const failed = outcomes.filter((outcome) => outcome.faults.length > 0);
      if (failed.length > 0 || faults.length > 0) process.exitCode = EXIT_FAILED;
      if (json) {
        const tests = outcomes.map(({ document, test, index, faults: wrong }) => ({
          rule: document.input.name,
          file: document.file,
          line: document.lineOfTest(index),
          test: test.name,
          ok: wrong.length === 0,
          faults: wrong,
        }));
        return printJson({ ok: process.exitCode !== EXIT_FAILED, rules: documents.length, tests, faults });
      }
      printFaults(faults);
      for (const { document, test, index, faults: wrong } of failed) {
        const place = `${document.file}:${document.lineOfTest(index)}`;
        for (const fault of wrong) print(`${place}: ${document.input.name}: "${plain(test.name)}" ${plain(fault)}`);
      }
      const sigma = files.filter(({ content }) => formatOf(content) === "sigma").length;
      if (sigma > 0) print(`${countOf(sigma, "Sigma file")} skipped: Sigma has no tests.`);
      const untested = documents.filter(({ input }) => input.tests.length === 0).length;
      print(
        `${countOf(outcomes.length - failed.length, "test")} of ${countOf(documents.length, "rule")} passed, ` +
          `${failed.length} failed${untested > 0 ? `; ${countOf(untested, "rule")} without tests` : ""}` +
          `${faults.length > 0 ? `; ${countOf(faults.length, "fault")} in the files` : ""}.`,
      );
    });
}

function addLint(rules: Command): void {
  const command = rules
    .command("lint")
    .argument("<paths...>", PATHS)
    .description("find faults and likely mistakes in rule files and Sigma rules")
    .option(...MAPPING_OPTION)
    .option("--strict", "fail on hints too")
    .option("--json", "as one JSON object");
  addSettingFlags(command, ["platform", "timezone"])
    .addHelpText(
      "after",
      "\nExamples:\n  tocsin rules lint site-rules/\n  tocsin rules lint doors.yaml --strict --json\n  tocsin rules lint sigma/rules --mapping mapping.yaml",
    )
    .action(async (paths: string[], { mapping, strict, json }: { mapping?: string; strict?: true; json?: true }) => {
      const own = await readDocuments(command, paths);
      const sigma = await lintSigma(command, own.files, mapping);
      const { lintRule } = await import("../detection/rules/lint.ts");
      const hints = [
        ...own.documents.flatMap((document) => {
          const { file, line, input } = document;
          return lintRule(document).map((hint): LintHint => ({ file, line, rule: input.name, ...hint }));
        }),
        ...sigma.hints,
      ];
      const faults = [...own.faults, ...sigma.faults];
      const rules = own.documents.length + sigma.rules;
      if (faults.length > 0 || (strict && hints.length > 0)) process.exitCode = EXIT_FAILED;
      if (json) return printJson({ ok: process.exitCode !== EXIT_FAILED, rules, faults, hints });
      printFaults(faults);
      if (hints.length > 0) {
        const rows = hints.map(({ rule, path, message }) => [plain(rule), path === "" ? "-" : path, plain(message)]);
        print(formatTable(["rule", "place", "hint"], rows));
      }
      print(`${countOf(rules, "rule")}: ${countOf(faults.length, "fault")}, ${countOf(hints.length, "hint")}.`);
    });
}

function printFaults(faults: readonly RuleFileFault[]): void {
  for (const { file, line, path, message } of faults) {
    print(`${file}:${line}: ${path === "" ? "" : `${path}: `}${plain(message)}`);
  }
}
