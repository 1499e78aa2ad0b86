import type { Command } from "commander";
import { EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { printFormatFaults, readFormatFiles } from "./format-files.ts";
import { countOf } from "./setting-flags.ts";
import { formatTable, print, printJson } from "./terminal.ts";

const HELP = `
A format is a YAML file that teaches how lines of a device are read. docs/devices/own-formats.md has the language.

Examples:
  tocsin formats list
  tocsin formats lint acme.yaml
  tocsin formats test /etc/tocsin/formats
  tocsin parse --format acme.yaml sample.log

Exit codes: 0 nothing wrong, ${EXIT_FAILED} a file has faults or a test failed, ${EXIT_WRONG_USE} wrong usage.`;

const PATHS = "files, or folders with .yaml and .yml files in them";

export function addFormats(program: Command): void {
  const formats = program
    .command("formats")
    .description("list, lint and test the formats of lines")
    .addHelpText("after", HELP);
  addFormatList(formats);
  addFormatLint(formats);
  addFormatTest(formats);
}

function addFormatList(formats: Command): void {
  formats
    .command("list")
    .description("list the formats that come with the service")
    .option("--json", "as one JSON object")
    .addHelpText("after", "\nExamples:\n  tocsin formats list\n  tocsin formats list --json")
    .action(async ({ json }: { json?: true }) => {
      const { knownFormats } = await import("../collectors/formats/known-formats.ts");
      const all = knownFormats().all.map(({ name, about, programs = [] }) => ({ name, about, programs }));
      if (json) return printJson({ formats: all });
      print(
        formatTable(
          ["format", "programs", "reads"],
          all.map(({ name, about, programs }) => [name, programs.join(", ") || "any", about]),
        ),
      );
    });
}

function addFormatLint(formats: Command): void {
  formats
    .command("lint")
    .argument("<paths...>", PATHS)
    .description("find faults in files, and lines that they take from other formats")
    .option("--json", "as one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  tocsin formats lint acme.yaml\n  tocsin formats lint /etc/tocsin/formats --json",
    )
    .action(async (paths: string[], { json }: { json?: true }) => {
      const { taught, formats: all, faults } = await readFormatFiles(paths);
      const { overlapFaults, hintsIn } = await import("../collectors/formats/described/description-checks.ts");
      const hints = [...overlapFaults(taught, all), ...taught.flatMap(hintsIn)];
      if (faults.length > 0) process.exitCode = EXIT_FAILED;
      if (json) return printJson({ ok: faults.length === 0, formats: taught.length, faults, hints });
      printFormatFaults(faults);
      printFormatFaults(hints);
      print(
        `${countOf(taught.length, "format")}: ${countOf(faults.length, "fault")}, ${countOf(hints.length, "hint")}.`,
      );
    });
}

function addFormatTest(formats: Command): void {
  formats
    .command("test")
    .argument("<paths...>", PATHS)
    .description("run the tests in files with all formats, as the service reads lines")
    .option("--json", "as one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  tocsin formats test acme.yaml\n  tocsin formats test /etc/tocsin/formats --json",
    )
    .action(async (paths: string[], { json }: { json?: true }) => {
      const { taught, formats: all, faults } = await readFormatFiles(paths);
      const { testFaults } = await import("../collectors/formats/described/description-checks.ts");
      const failed = testFaults(taught, all);
      const tests = taught.reduce((sum, { description }) => sum + description.tests.length, 0);
      const failures = new Set(failed.map(({ file, line }) => `${file}:${line}`)).size;
      if (failed.length > 0 || faults.length > 0) process.exitCode = EXIT_FAILED;
      if (json) return printJson({ ok: process.exitCode !== EXIT_FAILED, tests, failed, faults });
      printFormatFaults([...faults, ...failed]);
      print(
        `${countOf(tests - failures, "test")} of ${countOf(taught.length, "format")} passed, ${failures} failed` +
          `${faults.length > 0 ? `; ${countOf(faults.length, "fault")} in the files` : ""}.`,
      );
    });
}
