import { accessSync, constants, existsSync, lstatSync, statfsSync, statSync } from "node:fs";
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
    .action(async ({ json }: { json?: true }) => {
      const outcome = readSettings(command);
      const faults = "faults" in outcome ? outcome.faults : await folderFaults(outcome);
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

type Loaded = Extract<SettingsOutcome, { settings: unknown }>;

function originOf({ used }: Loaded, setting: string): string {
  return used.find(({ path }) => path === setting)!.origin;
}

/** File systems of the kernel's own, which make no folder for anyone: those of Linux, by their numbers. */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270]);

/** Whether the folder, or the nearest one above it that exists, can be written: asked, not tried. */
function dataFolderFaults(loaded: Loaded): SettingFault[] {
  const origin = originOf(loaded, "data_dir");
  const fault = (message: string) => [{ path: "data_dir", origin, message }];
  let folder = loaded.settings.dataDir;
  try {
    while (!existsSync(folder) && dirname(folder) !== folder) {
      if (isLink(folder)) return fault(`${folder} is a link that leads nowhere`);
      folder = dirname(folder);
    }
    if (!statSync(folder).isDirectory()) return fault(`${folder} is not a folder`);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    if (KERNEL_FILE_SYSTEMS.has(statfsSync(folder).type)) return fault(`no folder can be made in ${folder}`);
  } catch (error) {
    return fault(`${folder} cannot be written by this user (${(error as NodeJS.ErrnoException).code})`);
  }
  return [];
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw error;
  }
}

/** What is in the folder bears the word that it was written with. */
async function platformFaults(loaded: Loaded): Promise<SettingFault[]> {
  const { dataDir, platform } = loaded.settings;
  const { readPlatformWord } = await import("../store/index.ts");
  let known: string | undefined;
  try {
    known = readPlatformWord(dataDir);
  } catch (error) {
    const message = `what is in ${dataDir} cannot be read: ${(error as Error).message}`;
    return [{ path: "data_dir", origin: originOf(loaded, "data_dir"), message }];
  }
  if (known === undefined || known === platform) return [];
  const message = `must be ${known}, the word of the events or rules in ${dataDir}; it is ${platform}`;
  return [{ path: "platform", origin: originOf(loaded, "platform"), message }];
}

/** What the settings say of the folder, and the folder of them. */
async function folderFaults(loaded: Loaded): Promise<SettingFault[]> {
  const faults = dataFolderFaults(loaded);
  return faults.length > 0 ? faults : platformFaults(loaded);
}
