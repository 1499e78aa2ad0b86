import { existsSync } from "node:fs";
import { InvalidArgumentError, type Command } from "commander";
import { postgresOf } from "../config/settings.ts";
import { parseDuration } from "../lib/duration.ts";
import { makeFolder } from "../lib/folder.ts";
import { parseTime } from "../lib/time.ts";
import {
  COLLECT_NAMES,
  collectScope,
  GRACE_SECONDS_MAX,
  keyNameSchema,
  keyView,
  createKey,
  mayStandInPath,
  PLANS,
  revokeKey,
  rotateKey,
  rotationFault,
  SCOPES,
  type ApiKey,
  type NewKey,
  type Plan,
  type Scope,
} from "../model/key.ts";
import type { StorePlaces } from "../store/open-store.ts";
import type { KeyStore } from "../store/ports/key-store.ts";
import { CommandFailure, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { formatTable, plain, print, printJson } from "./terminal.ts";

const HELP = `
Changes the keys of the data folder, or of PostgreSQL if store.cases says so, with or without a running server, which sees the
change within a second.

Examples:
  tocsin keys create --name ci --scopes events:read,events:write --plan enterprise --json
  tocsin keys create --name console --scopes all --expires 90d
  tocsin keys create --name doors --scopes collect:access
  tocsin keys list
  tocsin keys rotate key_0199... --grace 1h
  tocsin keys revoke key_0199...`;

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .description("create, list, rotate and revoke API keys")
    .addHelpText("after", HELP);

  const create = keys
    .command("create")
    .description("create a key and show it once")
    .requiredOption("--name <name>", "the user or program of the key")
    .requiredOption("--scopes <list>", `separated by commas: all, or some of ${SCOPES.join(", ")}`)
    .option("--plan <plan>", `its request limits: ${PLANS.join(", ")}`, "starter")
    .option("--expires <when>", "a time or a duration from now: 2027-01-01, 90d")
    .option("--json", "as one JSON object");
  // A key may be created before the first start, when the folder does not exist yet.
  withKeyStore(create, { mayBegin: true, read: readCreate }, async (store, _, { json, ...wanted }) => {
    const made = createKey(wanted);
    await store.put(made.key);
    showSecret(made.key, made.secret, json);
  });

  const list = keys
    .command("list")
    .description("list the keys without their secrets")
    .option("--json", "as one JSON array");
  withKeyStore(list, { mayBegin: false }, async (store, _, { json }: { json?: true }) => {
    const usage = new Map((await store.usage()).map((used) => [used.keyId, used]));
    const now = Date.now();
    const views = (await store.list()).map((key) => keyView(key, usage.get(key.id), now));
    if (json) return printJson(views);
    if (views.length === 0)
      return print("There are no keys yet. Create one: tocsin keys create --name <name> --scopes all");
    const rows = views.map((key) => [
      key.id,
      plain(key.name),
      key.plan,
      key.scopes.length === SCOPES.length ? "all" : key.scopes.join(","),
      key.created_at,
      key.last_used_at ?? "never",
      key.revoked_at
        ? `revoked ${key.revoked_at}`
        : key.expires_at && parseTime(key.expires_at)! <= now
          ? `expired ${key.expires_at}`
          : key.expires_at
            ? `until ${key.expires_at}`
            : "active",
    ]);
    print(formatTable(["id", "name", "plan", "scopes", "created", "last used", "state"], rows));
  });

  const rotate = keys
    .command("rotate")
    .argument("<id>", "the key's id, as tocsin keys list shows it")
    .description("give a key a new secret and show it once")
    .option("--grace <duration>", "how long the old secret stays valid: 30s, 10m, 24h", readGrace, 0)
    .option("--json", "as one JSON object");
  withKeyStore(rotate, { mayBegin: false }, async (store, [id], { grace, json }: { grace: number; json?: true }) => {
    const rotation = { graceMs: grace, now: Date.now() };
    let secret = "";
    const rotated = await changeKey(store, id!, (key) => {
      requireNotRevoked(key);
      const fault = rotationFault(key, rotation);
      if (fault !== undefined) throw new CommandFailure(`Not rotated: ${fault}.`);
      const made = rotateKey(key, rotation);
      secret = made.secret;
      return made.key;
    });
    showSecret(rotated, secret, json);
  });

  const revoke = keys
    .command("revoke")
    .argument("<id>", "the key's id, as tocsin keys list shows it")
    .description("revoke a key")
    .option("--json", "as one JSON object");
  withKeyStore(revoke, { mayBegin: false }, async (store, [id], { json }: { json?: true }) => {
    const now = Date.now();
    const revoked = await changeKey(store, id!, (key) => revokeKey(key, now));
    if (json) printJson(keyView(revoked, undefined, now));
    else print(`Revoked ${revoked.id} (${plain(revoked.name)}). It is refused from the next request on.`);
  });
}

interface CreateOptions {
  name: string;
  scopes: string;
  plan: string;
  expires?: string;
  json?: true;
}

/** Reads all options together, to report all faults at once. */
function readCreate({ name, scopes, plan, expires, json }: CreateOptions): NewKey & { json: true | undefined } {
  const faults: string[] = [];
  const read = <Value>(flag: string, text: string, reader: (text: string) => Value): Value | undefined => {
    try {
      return reader(text);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      faults.push(`  ${flag} ${JSON.stringify(text)}: ${error.message}`);
      return undefined;
    }
  };
  const now = Date.now();
  const wanted = {
    name: read("--name", name, readName),
    scopes: read("--scopes", scopes, readScopes),
    plan: read("--plan", plan, readPlan),
    expiresAt: expires === undefined ? null : read("--expires", expires, (text) => readExpiry(text, now)),
  };
  if (faults.length > 0) {
    throw new CommandFailure(`The key has ${countOf(faults.length, "fault")}:\n${faults.join("\n")}`, EXIT_WRONG_USE);
  }
  return { ...(wanted as Omit<NewKey, "now">), now, json };
}

interface KeyCommand<Given, Options> {
  /** Creates a missing data folder, and a lost file of keys. */
  readonly mayBegin: boolean;
  /** Reads the options, before anything is opened or created. */
  readonly read?: (given: Given) => Options;
}

function withKeyStore<Given, Options = Given>(
  command: Command,
  { mayBegin, read }: KeyCommand<Given, Options>,
  run: (store: KeyStore, ids: string[], options: Options) => Promise<void>,
): void {
  addSettingFlags(command, ["data_dir"]).action(async () => {
    const { settings } = requireSettings(command);
    const given = command.opts<Given & object>();
    const options = read ? read(given) : (given as unknown as Options);
    try {
      const postgres = postgresOf(settings);
      if (postgres)
        await useKeys({ dataDir: settings.dataDir, postgres }, (store) => run(store, command.args, options));
      else await inFolder(settings.dataDir, mayBegin, (store) => run(store, command.args, options));
    } catch (error) {
      throw explainFailure(error, settings);
    }
  });
}

type UseKeys = (store: KeyStore) => Promise<void>;

async function inFolder(dataDir: string, mayBegin: boolean, use: UseKeys): Promise<void> {
  const { areKeysLost } = await import("../store/open-store.ts");
  const isNew = !existsSync(dataDir);
  if (mayBegin) makeFolder(dataDir);
  else requireFolder(dataDir);
  const wereLost = areKeysLost(dataDir);
  if (wereLost && !mayBegin) throw keysLost(dataDir);
  await useKeys({ dataDir }, use);
  if (isNew) tellOfNewFolder(dataDir);
  if (wereLost) tellOfLostKeys(dataDir);
}

async function useKeys(places: StorePlaces, use: UseKeys): Promise<void> {
  const { openKeyStore } = await import("../store/open-store.ts");
  const store = await openKeyStore(places);
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

/** Usually the working folder was wrong. On standard error: a script may read the result. */
function tellOfNewFolder(dataDir: string): void {
  process.stderr.write(
    `There was no data folder ${dataDir}: it was created with this key.\n` +
      "A service on another folder does not know this key: name that folder with --data-dir.\n",
  );
}

/** Opens nothing: that would create the file, and the next start would look like the first. */
function keysLost(dataDir: string): CommandFailure {
  return new CommandFailure(
    `The data folder ${dataDir} has events but no keys.db: its keys are lost.\n` +
      "Restore keys.db from a backup while the service is stopped, or create a new key for each client:\n" +
      "tocsin keys create --name <name> --scopes <list>",
  );
}

function tellOfLostKeys(dataDir: string): void {
  process.stderr.write(
    `The data folder ${dataDir} had events but no keys.db: its earlier keys are lost. A new file was created with this key.\n` +
      "Restart a running service, which does not see the new file.\n",
  );
}

function requireFolder(dataDir: string): void {
  if (existsSync(dataDir)) return;
  throw new CommandFailure(`There is no data folder ${dataDir}.\nName the one that the service uses with --data-dir.`);
}

function showSecret(key: ApiKey, secret: string, json: true | undefined): void {
  const view = keyView(key, undefined, Date.now());
  if (json) return printJson({ ...view, key: secret });
  const rest = view.previous_until === null ? "" : `\n${oldSecrets(key)} until ${view.previous_until}.`;
  print(`${secret}\n\nSave it now: it is not shown again. Its id is ${key.id}.${rest}${howToPost(key, secret)}`);
}

function oldSecrets({ previous }: ApiKey): string {
  return previous.length === 1 ? "The old secret works" : "The last of the old secrets works";
}

/** The URL to paste into a controller's settings, for a key of a collector. */
function howToPost(key: ApiKey, secret: string): string {
  if (!mayStandInPath(key)) return "";
  const paths = COLLECT_NAMES.filter((name) => key.scopes.includes(collectScope(name))).map(
    (name) => `\n  http://<this service>:<port>/v1/collect/${name}/${secret}`,
  );
  return `\n\nA controller that cannot set headers posts to${paths.join("")}\nOthers post to the same URL without the key, with the header Authorization: Bearer <key>.`;
}

async function changeKey(store: KeyStore, id: string, alter: (key: ApiKey) => ApiKey): Promise<ApiKey> {
  const key = await store.change(id, alter);
  if (key) return key;
  throw new CommandFailure(`There is no key ${id} in this data folder. tocsin keys list shows all keys.`);
}

function requireNotRevoked({ id, revokedAt }: ApiKey): void {
  if (revokedAt === null) return;
  throw new CommandFailure(
    `The key ${id} is revoked permanently. Create a new one: tocsin keys create --name <name> --scopes <list>`,
  );
}

function readName(text: string): string {
  const name = keyNameSchema.safeParse(text);
  if (name.success) return name.data;
  const fault = name.error.issues.find(({ code }) => code === "custom");
  throw new InvalidArgumentError(fault ? `It ${fault.message}.` : "It must have 1 to 100 characters.");
}

function readScopes(text: string): Scope[] {
  if (text === "all") return [...SCOPES];
  const given = text.split(",").map((scope) => scope.trim());
  const unknown = given.filter((scope) => scope !== "all" && !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length === 0) {
    if (!given.includes("all")) return given as Scope[];
    throw new InvalidArgumentError("all includes every scope: use it alone, or leave it out.");
  }
  const named = unknown.map((scope) => scope || "an empty one");
  throw new InvalidArgumentError(`Unknown scope: ${named.join(", ")}. Allowed: all, ${SCOPES.join(", ")}.`);
}

function readPlan(text: string): Plan {
  const plan = PLANS.find((plan) => plan === text);
  if (plan) return plan;
  throw new InvalidArgumentError(`Allowed: ${PLANS.join(", ")}.`);
}

/** The last day with a year of four digits, the limit of the time format. */
const EXPIRES_AT_MAX = Date.UTC(9999, 11, 31);

function readExpiry(text: string, now: number): number {
  const duration = parseDuration(text);
  const time = duration === undefined ? parseTime(text) : now + duration;
  if (time !== undefined && time > now && time <= EXPIRES_AT_MAX) return time;
  throw new InvalidArgumentError(
    "It must be a duration such as 90d, or a future time up to the year 9999, such as 2027-01-01T00:00:00Z.",
  );
}

function readGrace(text: string): number {
  const duration = text === "0" ? 0 : parseDuration(text);
  if (duration !== undefined && duration <= GRACE_SECONDS_MAX * 1000) return duration;
  throw new InvalidArgumentError(
    `It must be a duration such as 30s, 10m or 24h, of at most ${GRACE_SECONDS_MAX / 86_400} days.`,
  );
}
