import type { Command } from "commander";
import { describeFaults, type LoadedSettings, type SettingFault, type SettingsOutcome } from "../config/config.ts";
import { crossCheckWarnings } from "../config/cross-checks.ts";
import type { PartFault } from "./check-parts.ts";
import { EXIT_WRONG_USE } from "./command-failure.ts";
import { addSettingFlags, countOf, readSettings } from "./setting-flags.ts";
import { formatTable, print, printJson } from "./terminal.ts";

export function addCheck(program: Command): void {
  const command = program
    .command("check")
    .description("check the configuration and list the effective settings; starts and changes nothing")
    .option("--json", "as one JSON object");
  addSettingFlags(command)
    .addHelpText(
      "after",
      `
Examples:
  tocsin check
  tocsin check --config site.yaml --json
  TOCSIN_PORT=9000 tocsin check

Exit codes: 0 nothing wrong, ${EXIT_WRONG_USE} at least one fault.`,
    )
    .action(async ({ json }: { json?: true }) => {
      const outcome = readSettings(command);
      const faults = "faults" in outcome ? outcome.faults : await faultsOf(outcome);
      const warnings = "faults" in outcome ? [] : withOrigins(crossCheckWarnings(outcome.settings), outcome);
      if (faults.length > 0) process.exitCode = EXIT_WRONG_USE;
      if (json) printJson(asJson(outcome, faults, warnings));
      else if ("faults" in outcome) print(faultText(faults));
      else {
        const rows = outcome.used.map(({ path, value, origin }) => [path, shown(value), origin]);
        print(formatTable(["setting", "value", "from"], rows));
        if (warnings.length > 0) print(`\n${countOf(warnings.length, "warning")}:\n${describeFaults(warnings)}`);
        print(faults.length > 0 ? `\n${faultText(faults)}` : "\nNothing is wrong.");
      }
    });
}

async function faultsOf(outcome: LoadedSettings): Promise<SettingFault[]> {
  const { partFaults } = await import("./check-parts.ts");
  return withOrigins(await partFaults(outcome.settings), outcome);
}

function withOrigins(faults: readonly PartFault[], { used }: LoadedSettings): SettingFault[] {
  return faults.map((fault) => ({ ...fault, origin: used.find(({ path }) => path === fault.path)!.origin }));
}

function faultText(faults: readonly SettingFault[]): string {
  return `The configuration has ${countOf(faults.length, "fault")}:\n${describeFaults(faults)}`;
}

function asJson(outcome: SettingsOutcome, faults: readonly SettingFault[], warnings: readonly SettingFault[]) {
  if ("faults" in outcome) return { ok: false, faults };
  const settings = Object.fromEntries(outcome.used.map(({ path, value, origin }) => [path, { value, origin }]));
  return { ok: faults.length === 0, file: outcome.file, settings, faults, warnings };
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value ?? "unlimited");
}
