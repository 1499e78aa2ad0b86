import { existsSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { z } from "zod";
import { parseAddress, parseCidr } from "./lib/ip.ts";
import { LOG_LEVELS } from "./lib/log.ts";
import { nearestName } from "./lib/nearest.ts";
import { isZone } from "./model/hours.ts";

// Every setting there is. One line in the schema makes it a key of the file, a TOCSIN_ variable, a flag of
// `tocsin serve` and a row of docs/configuration.md; all their names derive from its place here.

const DAYS_MAX = 36_500;
const PORT_MAX = 65_535;
const ADDRESSES_MAX = 32;
const EXPORTER_NETWORKS_MAX = 1000;
const RATE_MAX = 100_000_000;
const BODY_BYTES_MIN = 1024;
const SUBMIT_BYTES_MAX = 64 * 1024 * 1024;
const BATCH_BYTES_MAX = 512 * 1024 * 1024;
const PROXIES_MAX = 100;
const LOOKUPS_PER_SECOND_MAX = 1000;
const FILE_BYTES_MAX = 1024 * 1024;
const DEFAULT_FILE = "tocsin.yaml";
/** Not settings of the service: where a command finds one that runs, and the key it uses there. */
export const CLIENT_VARIABLES = { url: "TOCSIN_URL", key: "TOCSIN_KEY" } as const;

interface Facts {
  readonly about: string;
  readonly allowed: string;
  readonly fallback: unknown;
  /** From the text of a variable or a flag to what the file would hold. */
  readonly read: (text: string) => unknown;
}

const facts = z.registry<Facts>();

function setting<Schema extends z.ZodType>(schema: Schema, known: Facts): Schema {
  facts.add(schema, known);
  return schema;
}

const readNumber = (text: string) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text);
const readText = (text: string) => text;

const integer = (about: string, fallback: number, min: number, max: number) =>
  setting(z.int().min(min).max(max), {
    about,
    allowed: `a whole number from ${min} to ${max}`,
    fallback,
    read: readNumber,
  });

const word = (about: string, fallback: string, pattern: RegExp, allowed: string) =>
  setting(z.string().regex(pattern), { about, allowed, fallback, read: readText });

const choice = <const Names extends readonly string[]>(about: string, fallback: Names[number], names: Names) =>
  setting(z.enum(names), { about, allowed: `one of ${names.join(", ")}`, fallback, read: readText });

const onOff = (about: string, fallback: "on" | "off") =>
  setting(
    z.union([z.boolean(), z.enum(["on", "off"])]).transform((given) => given === true || given === "on"),
    { about, allowed: "on or off", fallback, read: (text) => text.toLowerCase() },
  );

const perDay = (about: string, fallback: number | "unlimited") =>
  setting(z.union([z.int().min(1).max(RATE_MAX), z.union([z.literal("unlimited"), z.null()]).transform(() => null)]), {
    about,
    allowed: `a whole number from 1 to ${RATE_MAX}, or unlimited`,
    fallback,
    read: readNumber,
  });

const perMinute = (about: string, fallback: number) => integer(about, fallback, 1, RATE_MAX);

/** `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` or `[2001:db8::53]:5353`. */
function isResolver(text: string): boolean {
  const parts = /^\[(.+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([\d.]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const [, address = text, port = "53"] = parts;
  return parseAddress(address) !== undefined && Number(port) > 0 && Number(port) < 65_536;
}

const portOrOff = (about: string, fallback: number) =>
  setting(
    z.union([
      z.int().min(0).max(PORT_MAX),
      z.union([z.literal("off"), z.literal(false), z.null()]).transform(() => null),
    ]),
    { about, allowed: `a whole number from 0 to ${PORT_MAX}, or off`, fallback, read: readNumber },
  );

const readList = (text: string) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

const PROXY_WORDS = ["loopback", "linklocal", "uniquelocal"];

const settingsSchema = z.strictObject({
  host: word(
    "address to listen on; 0.0.0.0 or :: for every interface",
    "127.0.0.1",
    /^[A-Za-z0-9_.:%-]{1,255}$/,
    "an address or a host name",
  ),
  port: integer("port to listen on; 0 takes any free one", 8080, 0, 65_535),
  dataDir: word(
    "folder that holds everything the service keeps; made when missing; relative to the working folder",
    "./data",
    /^[^\0]+$/,
    "a path",
  ),
  platform: word(
    "word in front of the sources: <platform>_network, <platform>_protect, <platform>_access, <platform>_talk",
    "platform",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  indexPrefix: word(
    "beginning of the names of the units that data is kept in, day by day",
    "tocsin",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  timezone: setting(z.string().refine(isZone), {
    about: "the site's time zone: what night and office hours mean in built-in rules",
    allowed: "the name of a time zone, such as UTC or Europe/Berlin",
    fallback: "UTC",
    read: readText,
  }),
  retention: z.strictObject({
    eventsDays: integer("days that events are kept; whole UTC days are removed", 365, 1, DAYS_MAX),
    flowsDays: integer("days that network flows are kept; whole UTC days are removed", 30, 1, DAYS_MAX),
  }),
  plans: z.strictObject({
    starter: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan starter", 60),
      perDay: perDay("requests a UTC day for a key of the plan starter", 10_000),
    }),
    pro: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan pro", 300),
      perDay: perDay("requests a UTC day for a key of the plan pro", 100_000),
    }),
    enterprise: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan enterprise", 1000),
      perDay: perDay("requests a UTC day for a key of the plan enterprise", "unlimited"),
    }),
  }),
  rateLimits: onOff("whether requests are limited at all", "on"),
  anonymousPerMinute: perMinute("requests a minute for a client address without a valid key", 60),
  bodyLimits: z.strictObject({
    submitBytes: integer("largest body of a request, but for a batch", 1_048_576, BODY_BYTES_MIN, SUBMIT_BYTES_MAX),
    batchBytes: integer("largest body of a batch of events", 33_554_432, BODY_BYTES_MIN, BATCH_BYTES_MAX),
  }),
  trustedProxies: setting(
    z.array(z.string().refine((item) => PROXY_WORDS.includes(item) || parseCidr(item) !== undefined)).max(PROXIES_MAX),
    {
      about: "proxies whose X-Forwarded-For is believed",
      allowed: `a list of addresses, networks, ${PROXY_WORDS.join(", ")} (separated by commas in a variable or a flag)`,
      fallback: [],
      read: readList,
    },
  ),
  hostnames: z.strictObject({
    enabled: onOff("whether names for the addresses of flows are looked up in DNS", "on"),
    resolver: setting(z.union([z.literal("system").transform(() => null), z.string().refine(isResolver)]), {
      about: "DNS server to ask; private addresses are asked of a server that is named here, never of the system's",
      allowed: "system, or an address with or without a port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:5353",
      fallback: "system",
      read: readText,
    }),
    perSecondMax: integer("names looked up in a second at most", 20, 1, LOOKUPS_PER_SECOND_MAX),
  }),
  netflowPort: portOrOff("UDP port for NetFlow v5, v9 and IPFIX; 0 takes any free one, off closes it", 2055),
  ipfixPort: portOrOff("UDP and TCP port for IPFIX", 4739),
  sflowPort: portOrOff("UDP port for sFlow v5", 6343),
  flows: z.strictObject({
    addresses: setting(
      z
        .array(z.string().refine((item) => isIP(item) !== 0))
        .min(1)
        .max(ADDRESSES_MAX),
      {
        about: "addresses that the flow collectors listen on",
        allowed: "a list of addresses (separated by commas in a variable or a flag)",
        fallback: ["0.0.0.0", "::"],
        read: readList,
      },
    ),
    allowedExporters: setting(
      z.array(z.string().refine((item) => parseCidr(item) !== undefined)).max(EXPORTER_NETWORKS_MAX),
      {
        about: "who may send flows; empty: everyone",
        allowed: "a list of addresses and networks (separated by commas in a variable or a flag)",
        fallback: [],
        read: readList,
      },
    ),
    receiveBufferBytes: integer(
      "what the system is asked to hold of datagrams that are not read yet; it gives at most net.core.rmem_max",
      8_388_608,
      65_536,
      1_073_741_824,
    ),
    ringBytes: integer(
      "room for datagrams that are received and not decoded yet",
      16_777_216,
      1_048_576,
      1_073_741_824,
    ),
    graceSeconds: integer("how long after its end a window waits for records", 15, 0, 600),
    lateSeconds: integer("records of flows that ended longer ago are dropped", 3600, 60, 604_800),
    clockSkewSeconds: integer(
      "an exporter whose clock is further off is read as if it were right when it sends",
      60,
      1,
      86_400,
    ),
    journalSeconds: integer("a crash loses at most the records of so many seconds", 5, 1, 60),
    tuplesMax: integer(
      "rows in memory, stored ones not counted; with half of them in open windows the largest is stored early, with all of them the rest is added to rows without addresses",
      1_000_000,
      10_000,
      50_000_000,
    ),
    summaries: onOff(
      "whether busy hosts are told of in events of the type flow_summary, so that rules see flows",
      "on",
    ),
    summaryPeers: integer("different peers within a window that make a host busy", 30, 1, RATE_MAX),
    summaryPorts: integer("different ports within a window that make a host busy", 30, 1, RATE_MAX),
    summaryBytes: integer("bytes sent within a window that make a host busy", 100_000_000, 1, Number.MAX_SAFE_INTEGER),
  }),
  logLevel: choice("least severe log line that is written", "info", LOG_LEVELS),
});

export type Settings = z.output<typeof settingsSchema>;

export interface SettingEntry extends Facts {
  /** As in the file: `retention.events_days`. */
  readonly path: string;
  readonly variable: string;
  readonly flag: string;
  readonly schema: z.ZodType;
}

type Group = z.ZodObject<Record<string, z.ZodType>>;

/** Every setting with its names, in the order of the schema. */
export function settingEntries(group: Group = settingsSchema as Group, above = ""): SettingEntry[] {
  return Object.entries(group.shape).flatMap(([name, schema]) => {
    const path = above + snakeCase(name);
    if (schema instanceof z.ZodObject) return settingEntries(schema as Group, `${path}.`);
    const word = path.replaceAll(".", "_");
    const variable = `TOCSIN_${word.toUpperCase()}`;
    return [{ path, variable, flag: `--${word.replaceAll("_", "-")}`, schema, ...facts.get(schema)! }];
  });
}

export interface SettingSources {
  /** Texts given as flags, by the path of the setting. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly configFile?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
}

export interface SettingFault {
  readonly path: string;
  /** Where the value stands: `file tocsin.yaml`, `variable TOCSIN_PORT`, `flag --port`. */
  readonly origin: string;
  readonly message: string;
}

export interface LoadedSettings {
  readonly settings: Settings;
  readonly file: string | null;
  readonly used: readonly { readonly path: string; readonly value: unknown; readonly origin: string }[];
}

export type SettingsOutcome = LoadedSettings | { readonly faults: readonly SettingFault[] };

interface Given {
  readonly entry: SettingEntry;
  readonly value: unknown;
  readonly origin: string;
}

/** Defaults, then the file, then variables, then flags; every fault of every source at once. */
export function loadSettings(sources: SettingSources): SettingsOutcome {
  const faults: SettingFault[] = [];
  const entries = settingEntries();
  const file = findFile(sources, faults);
  const given: Given[] = [
    ...entries.map((entry) => ({ entry, value: entry.fallback, origin: "default" })),
    ...(file === null ? [] : readFile(file, entries, faults)),
    ...readVariables(sources.environment, entries, faults),
    ...entries
      .filter((entry) => sources.flags?.[entry.path] !== undefined)
      .map((entry) => ({ entry, value: entry.read(sources.flags![entry.path]!), origin: `flag ${entry.flag}` })),
  ];
  const winners = new Map<string, Given>();
  for (const item of given) {
    if (!item.entry.schema.safeParse(item.value).success) {
      const message = `must be ${item.entry.allowed}; it is ${shown(item.value)}`;
      faults.push({ path: item.entry.path, origin: item.origin, message });
    }
    winners.set(item.entry.path, item);
  }
  if (faults.length > 0) return { faults };
  const parsed = settingsSchema.parse(nest(settingsSchema as Group, winners));
  const settings = { ...parsed, dataDir: resolve(sources.workingFolder, parsed.dataDir) };
  const used = [...winners.values()].map(({ entry: { path }, value, origin }) => ({
    path,
    value: path === "data_dir" ? settings.dataDir : value,
    origin,
  }));
  return { settings, file, used };
}

function nest(group: Group, values: ReadonlyMap<string, Given>, above = ""): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(group.shape).map(([name, schema]) => {
      const path = above + snakeCase(name);
      const inside = schema instanceof z.ZodObject;
      return [name, inside ? nest(schema as Group, values, `${path}.`) : values.get(path)!.value];
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

function readFile(file: string, entries: readonly SettingEntry[], faults: SettingFault[]): Given[] {
  const origin = `file ${file}`;
  const refuse = (path: string, message: string) => void faults.push({ path, origin, message });
  let text: string;
  try {
    text = readFileSync(file, "utf8");
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

  const found: Given[] = [];
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
  environment: SettingSources["environment"],
  entries: readonly SettingEntry[],
  faults: SettingFault[],
): Given[] {
  const known = ["TOCSIN_CONFIG", ...Object.values(CLIENT_VARIABLES), ...entries.map(({ variable }) => variable)];
  for (const name of Object.keys(environment)) {
    if (name.startsWith("TOCSIN_") && !known.includes(name)) {
      faults.push({ path: name, origin: `variable ${name}`, message: unknownName(name, known) });
    }
  }
  // An empty variable is one that is not set: that is how compose files and unit files say so.
  return entries
    .filter(({ variable }) => environment[variable])
    .map((entry) => ({
      entry,
      value: entry.read(environment[entry.variable]!),
      origin: `variable ${entry.variable}`,
    }));
}

function namesBelow(entries: readonly SettingEntry[], above: string): string[] {
  const below = entries.filter(({ path }) => path.startsWith(above)).map(({ path }) => path.slice(above.length));
  return [...new Set(below.map((path) => path.split(".")[0]!))];
}

function unknownName(name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  return near ? `is not a setting; did you mean ${near}?` : `is not a setting; there are ${names.join(", ")}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The faults as a person reads them, one line each. */
export function describeFaults(faults: readonly SettingFault[]): string {
  return faults.map(({ path, origin, message }) => `  ${path} (${origin}): ${message}`).join("\n");
}

/** Where a client on this machine reaches a server that listens there. */
export function clientAddress(host: string, port: number): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
