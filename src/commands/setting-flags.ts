import { Option, type Command } from "commander";
import {
  describeFaults,
  loadSettings,
  settingEntries,
  type LoadedSettings,
  type SettingsOutcome,
} from "../config/config.ts";
import { CommandFailure, EXIT_WRONG_USE } from "./command-failure.ts";

/** Settings whose default a command replaces, by path. They win over file and variables. */
type CommandDefaults = Readonly<Record<string, string>>;

/** Adds the flag --config and one flag per setting, or per named setting. */
export function addSettingFlags(command: Command, paths?: readonly string[], defaults: CommandDefaults = {}): Command {
  command.addOption(new Option("--config <file>", "settings in YAML (default: tocsin.yaml, where there is one)"));
  for (const { path, flag, about, fallback } of settingEntries()) {
    if (paths && !paths.includes(path)) continue;
    const shown = defaults[path] ?? (Array.isArray(fallback) ? fallback.join(",") || "none" : String(fallback));
    command.addOption(new Option(`${flag} <value>`, `${about} (default: ${shown})`));
  }
  return command;
}

export function readSettings(command: Command, defaults: CommandDefaults = {}): SettingsOutcome {
  const given = command.optsWithGlobals<Record<string, string | undefined>>();
  const flags = settingEntries().flatMap(({ path, flag }) => {
    const value = given[new Option(`${flag} <value>`).attributeName()];
    return value === undefined ? [] : [[path, value] as const];
  });
  return loadSettings({
    flags: { ...defaults, ...Object.fromEntries(flags) },
    configFile: given["config"],
    environment: process.env,
    workingFolder: process.cwd(),
  });
}

export function requireSettings(command: Command, defaults: CommandDefaults = {}): LoadedSettings {
  const outcome = readSettings(command, defaults);
  if (!("faults" in outcome)) return outcome;
  throw new CommandFailure(
    `The configuration has ${countOf(outcome.faults.length, "fault")}:\n${describeFaults(outcome.faults)}\n` +
      "docs/configuration.md lists every setting; tocsin check lists the effective values and their origins.",
    EXIT_WRONG_USE,
  );
}

export function countOf(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
