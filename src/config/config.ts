import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { z } from "zod";
import { shownAddress } from "../lib/redact.ts";
import { nearestName } from "../lib/nearest.ts";
import { settingMeta, type SettingMeta } from "../lib/setting-types.ts";
import { snakeCase } from "../lib/text.ts";
import { settingsSchema, type Settings } from "./settings.ts";
import { crossCheckFaults } from "./cross-checks.ts";

// Loads the settings of the service from defaults, a file, variables and flags.

const FILE_BYTES_MAX = 1024 * 1024;
/** A secret is at most a long URL. */
const SECRET_BYTES_MAX = 16 * 1024;
const DEFAULT_FILE = "tocsin.yaml";
const VARIABLE_PREFIX = "TOCSIN_";
/** Variables of client commands, not settings: the URL of a running service and the API key. */
export const CLIENT_VARIABLES = { url: "TOCSIN_URL", key: "TOCSIN_KEY" } as const;

export interface SettingEntry extends SettingMeta {
  /** The key in the file: `retention.events_days`. */
  readonly path: string;
  readonly variable: string;
  readonly flag: string;
  readonly schema: z.ZodType;
}

type SettingGroup = z.ZodObject<Record<string, z.ZodType>>;

/** All settings with their names, in the order of the schema. */
export function settingEntries(group: SettingGroup = settingsSchema as SettingGroup, above = ""): SettingEntry[] {
  return Object.entries(group.shape).flatMap(([name, schema]) => {
    const path = above + snakeCase(name);
    if (schema instanceof z.ZodObject) return settingEntries(schema as SettingGroup, `${path}.`);
    const word = path.replaceAll(".", "_");
    const variable = `${VARIABLE_PREFIX}${word.toUpperCase()}`;
    return [{ path, variable, flag: `--${word.replaceAll("_", "-")}`, schema, ...settingMeta.get(schema)! }];
  });
}

export interface SettingSources {
  /** Values of flags by the path of the setting. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly configFile?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
}

export interface SettingFault {
  readonly path: string;
  /** The source of the value: `file tocsin.yaml`, `variable TOCSIN_PORT`, `flag --port`. */
  readonly origin: string;
  readonly message: string;
}

export interface LoadedSettings {
  readonly settings: Settings;
  readonly file: string | null;
  readonly used: readonly { readonly path: string; readonly value: unknown; readonly origin: string }[];
}

export type SettingsOutcome = LoadedSettings | { readonly faults: readonly SettingFault[] };

interface GivenSetting {
  readonly entry: SettingEntry;
  readonly value: unknown;
  readonly origin: string;
}

/** Later sources win: defaults, file, variables, flags. Reports the faults of all sources at once. */
export function loadSettings(sources: SettingSources): SettingsOutcome {
  const faults: SettingFault[] = [];
  const entries = settingEntries();
  const file = findFile(sources, faults);
  const given: GivenSetting[] = [
    ...entries.map((entry) => ({ entry, value: entry.fallback, origin: "default" })),
    ...(file === null ? [] : readFile(file, entries, faults)),
    ...readVariables(sources, entries, faults),
    ...entries
      .filter((entry) => sources.flags?.[entry.path] !== undefined)
      .map((entry) => ({ entry, value: entry.read(sources.flags![entry.path]!), origin: `flag ${entry.flag}` })),
  ];
  const winners = new Map<string, GivenSetting>();
  for (const item of given) {
    if (!item.entry.schema.safeParse(item.value).success) {
      const is = item.entry.isSecret ? "something else" : shown(item.value, item.entry);
      const message = `must be ${item.entry.allowed}; it is ${is}`;
      faults.push({ path: item.entry.path, origin: item.origin, message });
    }
    winners.set(item.entry.path, item);
  }
  if (faults.length > 0) return { faults };
  const parsed = settingsSchema.parse(nest(settingsSchema as SettingGroup, winners));
  const settings = { ...parsed, dataDir: resolve(sources.workingFolder, parsed.dataDir) };
  const crossFaults = crossCheckFaults(settings);
  if (crossFaults.length > 0) {
    const originOf = (path: string) => winners.get(path)!.origin;
    return { faults: crossFaults.map(({ path, because, message }) => ({ path, origin: originOf(because), message })) };
  }
  const used = [...winners.values()].map(({ entry, value, origin }) => ({
    path: entry.path,
    value: entry.path === "data_dir" ? settings.dataDir : asListed(value, entry),
    origin,
  }));
  return { settings, file, used };
}

function nest(group: SettingGroup, values: ReadonlyMap<string, GivenSetting>, above = ""): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(group.shape).map(([name, schema]) => {
      const path = above + snakeCase(name);
      const inside = schema instanceof z.ZodObject;
      return [name, inside ? nest(schema as SettingGroup, values, `${path}.`) : values.get(path)!.value];
    }),
  );
}

function findFile({ configFile, environment, workingFolder }: SettingSources, faults: SettingFault[]): string | null {
  const named = configFile ?? (environment["TOCSIN_CONFIG"] || undefined);
  const path = resolve(workingFolder, named ?? DEFAULT_FILE);
  if (existsSync(path)) return path;
  if (named !== undefined) {
    const origin = configFile === undefined ? "variable TOCSIN_CONFIG" : "flag --config";
    const where = isAbsolute(named) ? named : `${named} in ${workingFolder}`;
    faults.push({ path: "config", origin, message: `there is no file ${where}` });
  }
  return null;
}

/** Reads at most `bytesMax` bytes: the path may name an endless device. */
function readBeginning(file: string, bytesMax: number): string {
  const bytes = Buffer.alloc(bytesMax);
  const handle = openSync(file, "r");
  try {
    let length = 0;
    for (let read = -1; read !== 0 && length < bytesMax; length += read) {
      read = readSync(handle, bytes, length, bytesMax - length, null);
    }
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(handle);
  }
}

function readFile(file: string, entries: readonly SettingEntry[], faults: SettingFault[]): GivenSetting[] {
  const origin = `file ${file}`;
  const refuse = (path: string, message: string) => void faults.push({ path, origin, message });
  let text: string;
  try {
    text = readBeginning(file, FILE_BYTES_MAX + 1);
  } catch (error) {
    refuse("config", `cannot be read: ${(error as Error).message}`);
    return [];
  }
  if (text.length > FILE_BYTES_MAX) {
    refuse("config", `is larger than ${FILE_BYTES_MAX} bytes`);
    return [];
  }
  const document = parseDocument(text);
  const wrong = [...document.errors, ...document.warnings];
  for (const error of wrong) refuse("config", `is not YAML: ${error.message.split("\n")[0]!.replace(/:$/, "")}`);
  if (wrong.length > 0) return [];

  const found: GivenSetting[] = [];
  const visit = (value: unknown, above: string): void => {
    if (value === null && above === "") return;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      refuse(
        above.slice(0, -1) || "config",
        `must hold ${namesBelow(entries, above).join(", ")}; it is ${shown(value)}`,
      );
      return;
    }
    for (const [name, inner] of Object.entries(value)) {
      const path = above + name;
      const entry = entries.find((entry) => entry.path === path);
      if (entry) found.push({ entry, value: inner, origin });
      else if (namesBelow(entries, above).includes(name)) visit(inner, `${path}.`);
      else refuse(path, unknownName(name, namesBelow(entries, above)));
    }
  };
  visit(document.toJS(), "");
  return found;
}

function readVariables(
  { environment, workingFolder }: SettingSources,
  entries: readonly SettingEntry[],
  faults: SettingFault[],
): GivenSetting[] {
  const variables = entries.map(({ variable }) => variable);
  const secretFiles = secretFileVariables(entries);
  const known = ["TOCSIN_CONFIG", ...Object.values(CLIENT_VARIABLES), ...variables, ...secretFiles.keys()];
  for (const name of Object.keys(environment)) {
    if (name.startsWith(VARIABLE_PREFIX) && !known.includes(name)) {
      faults.push({ path: name, origin: `variable ${name}`, message: unknownVariable(name, known) });
    }
  }
  // An empty variable counts as unset: compose files and unit files write it that way.
  const given = entries
    .filter(({ variable }) => environment[variable])
    .map((entry) => ({
      entry,
      value: entry.read(environment[entry.variable]!),
      origin: `variable ${entry.variable}`,
    }));
  for (const [name, entry] of secretFiles) {
    if (!environment[name]) continue;
    const origin = `variable ${name}`;
    const refuse = (message: string) => void faults.push({ path: entry.path, origin, message });
    if (environment[entry.variable]) {
      refuse(`is set, and so is ${entry.variable}: set one of them`);
      continue;
    }
    try {
      const text = readBeginning(resolve(workingFolder, environment[name]), SECRET_BYTES_MAX + 1);
      if (text.length > SECRET_BYTES_MAX) refuse(`names a file larger than ${SECRET_BYTES_MAX} bytes`);
      // Editors and `echo` end a file with a line break.
      else given.push({ entry, value: entry.read(text.replace(/\r?\n$/, "")), origin });
    } catch (error) {
      refuse(`names a file that cannot be read: ${(error as Error).message}`);
    }
  }
  return given;
}

/** `TOCSIN_..._FILE` names a file that holds the secret, as container platforms mount them. */
function secretFileVariables(entries: readonly SettingEntry[]): Map<string, SettingEntry> {
  const taken = new Set(entries.map(({ variable }) => variable));
  const secrets = entries.filter(({ isSecret, variable }) => isSecret && !taken.has(`${variable}_FILE`));
  return new Map(secrets.map((entry) => [`${entry.variable}_FILE`, entry]));
}

function namesBelow(entries: readonly SettingEntry[], above: string): string[] {
  const below = entries.filter(({ path }) => path.startsWith(above)).map(({ path }) => path.slice(above.length));
  return [...new Set(below.map((path) => path.split(".")[0]!))];
}

function unknownName(name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  return near ? `is not a setting; did you mean ${near}?` : `is not a setting; there are ${names.join(", ")}`;
}

/** Compares names without their common prefix, which would make all of them similar. */
function unknownVariable(name: string, names: readonly string[]): string {
  const rest = (variable: string) => variable.slice(VARIABLE_PREFIX.length);
  const near = nearestName(rest(name), names.map(rest));
  return near
    ? `is not a setting; did you mean ${VARIABLE_PREFIX}${near}?`
    : `is not a setting; there are ${names.join(", ")}`;
}

/** The value as `tocsin check` lists it. */
function asListed(value: unknown, { isSecret, fallback, shownAs = shownAddress }: SettingMeta): unknown {
  if (isSecret && value !== fallback) return "(secret)";
  const one = (item: unknown) => (typeof item === "string" ? shownAs(item) : item);
  return Array.isArray(value) ? value.map(one) : one(value);
}

/** A wrong value for an error message, redacted: even a malformed URL may contain a key. */
function shown(value: unknown, { shownAs = shownAddress }: Pick<SettingMeta, "shownAs"> = {}): string {
  const hidden = (_: string, item: unknown) => (typeof item === "string" ? shownAs(item) : item);
  const text = JSON.stringify(value, hidden) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

/** The faults as text, one line each. */
export function describeFaults(faults: readonly SettingFault[]): string {
  return faults.map(({ path, origin, message }) => `  ${path} (${origin}): ${message}`).join("\n");
}

/** The URL at which a client on this machine reaches a server that listens on this host and port. */
export function clientAddress(host: string, port: number): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
