import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { describeFaults, type SettingFault, type SettingsOutcome } from "../config/config.ts";
import { EXIT_WRONG_USE } from "./failure.ts";
import { addSettingFlags, countOf, readSettings } from "./settings.ts";
import { formatTable, print, printJson } from "./terminal.ts";

export function addCheck(program: Command): void {
  const command = program
    .command("check")
    .description("check the whole configuration and say what would be used; starts nothing, changes nothing")
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
    .action(({ json }: { json?: true }) => {
      const outcome = readSettings(command);
      const faults = "faults" in outcome ? outcome.faults : dataFolderFaults(outcome);
      if (faults.length > 0) process.exitCode = EXIT_WRONG_USE;
      if (json) printJson(asJson(outcome, faults));
      else if ("faults" in outcome) print(faultText(faults));
      else {
        const rows = outcome.used.map(({ path, value, origin }) => [path, shown(value), origin]);
        print(formatTable(["setting", "value", "from"], rows));
        print(faults.length > 0 ? `\n${faultText(faults)}` : "\nNothing is wrong.");
      }
    });
}

function faultText(faults: readonly SettingFault[]): string {
  return `The configuration has ${countOf(faults.length, "fault")}:\n${describeFaults(faults)}`;
}

function asJson(outcome: SettingsOutcome, faults: readonly SettingFault[]) {
  if ("faults" in outcome) return { ok: false, faults };
  const settings = Object.fromEntries(outcome.used.map(({ path, value, origin }) => [path, { value, origin }]));
  return { ok: faults.length === 0, file: outcome.file, settings, faults };
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value ?? "unlimited");
}

/** Whether the folder, or the nearest one above it that exists, can be written: asked, not tried. */
function dataFolderFaults({ settings, used }: Extract<SettingsOutcome, { settings: unknown }>): SettingFault[] {
  const origin = used.find(({ path }) => path === "data_dir")!.origin;
  const fault = (message: string) => [{ path: "data_dir", origin, message }];
  let folder = settings.dataDir;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) return fault(`${folder} is not a folder`);
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    return fault(`${folder} cannot be written by this user (${(error as NodeJS.ErrnoException).code})`);
  }
}
