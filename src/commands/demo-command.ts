import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import { clientAddress, type LoadedSettings } from "../config/config.ts";
import { openSearchOf, postgresOf, type Settings } from "../config/settings.ts";
import { EVENTS_WITH_SCENARIOS_MIN } from "../demo/demo.ts";
import { DAY_MS, formatTime, parseTime } from "../lib/time.ts";
import { CommandFailure, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import { runServer } from "./serve-command.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { print, printJson, startProgress } from "./terminal.ts";

const DAYS_MAX = 366;
const EVENTS_MAX = 50_000_000;
const FLOWS_MAX = 20_000_000;
const SEED_MAX = 4_294_967_295;
/** A folder of its own, whatever the configuration says: demo events must not get among real ones by accident. */
const FOLDER = { data_dir: "demo-data" };
/** In the data folder, tells a demo from real events. */
const MARK = "demo.json";

interface DemoFlags {
  days: number;
  events: number;
  flows: number;
  seed: number;
  end?: number;
  add?: true;
  serve?: true;
  json?: true;
}

export function addDemo(program: Command): void {
  const command = program
    .command("demo")
    .description("fill a folder of its own with a realistic week: events, alerts that people handled, and flows")
    .option("--days <number>", "number of days up to the end", readNumber(1, DAYS_MAX), 7)
    .option("--events <number>", "how many events", readNumber(1, EVENTS_MAX), 50_000)
    .option("--flows <number>", "about how many flows; 0 for none", readNumber(0, FLOWS_MAX), 100_000)
    .option(
      "--seed <number>",
      "seed of the generator; the same seed and end give the same demo",
      readNumber(0, SEED_MAX),
      1,
    )
    .option("--end <time>", "the last moment of the demo (default: now)", readPast)
    .option("--add", "fill the folder even if it has events")
    .option(
      "--serve",
      "run the service on the folder, filling it only if it is empty; takes every flag of tocsin serve",
    )
    .option("--json", "the summary as one JSON object");
  addSettingFlags(command, undefined, FOLDER)
    .addHelpText(
      "after",
      `
Writes to the data folder directly: stop a server that uses it first. Remove the demo with: rm -r ${FOLDER.data_dir}

Examples:
  tocsin demo --serve
  tocsin demo --days 30 --events 500000 --data-dir ./month
  tocsin demo --end 2026-11-15T17:00:00Z --seed 7`,
    )
    .action(async (flags: DemoFlags) => {
      const loaded = requireSettings(command, FOLDER);
      const { settings } = loaded;
      const mark = readMark(settings.dataDir);
      if (flags.serve && mark?.complete && !flags.add) return runServer(loaded, { isDemo: true });
      const filled = await fill(flags, settings);
      if (flags.serve) {
        process.stderr.write(`${summaryOf(filled, settings)}\n`);
        return runServer(loaded, { isDemo: true });
      }
      if (flags.json) printJson({ ...filled, data_dir: settings.dataDir });
      else print(nextSteps(filled, loaded));
    });
}

interface Filled {
  readonly events: number;
  readonly alerts: number;
  readonly flows: number;
  readonly from: string;
  readonly to: string;
  readonly days: number;
  readonly seed: number;
  readonly seconds: number;
}

async function fill({ days, events, flows, seed, end, add }: DemoFlags, settings: Settings): Promise<Filled> {
  const { dataDir, platform, indexPrefix, timezone, retention, analysis } = settings;
  const to = end ?? Date.now();
  const from = to - days * DAY_MS;
  const oldest = Math.ceil((Date.now() - from) / DAY_MS);
  if (oldest > retention.eventsDays) {
    throw new CommandFailure(
      `Events are kept for ${countOf(retention.eventsDays, "day")} (retention.events_days): a demo that begins ${countOf(oldest, "day")} ago would be removed at the next start.`,
      EXIT_WRONG_USE,
    );
  }
  const { createLog } = await import("../lib/log.ts");
  const { Registry } = await import("prom-client");
  const { openStore } = await import("../store/open-store.ts");
  const { DemoClock, fillDemo } = await import("../demo/fill.ts");
  const { loadBuiltinRules } = await import("../detection/rules/builtin.ts");
  const { openRulebook } = await import("../detection/rules/rulebook.ts");
  const log = createLog({ level: "error", destination: process.stderr });
  const startedAt = performance.now();
  const progress = startProgress("Storing events");
  const clock = new DemoClock(from);
  try {
    const store = await openStore({
      dataDir,
      platform,
      indexPrefix,
      postgres: postgresOf(settings),
      opensearch: openSearchOf(settings),
      registry: new Registry(),
      log,
      now: clock.now,
    });
    try {
      if ((await store.events.lastArrival()) !== null && !add) throw occupied(dataDir);
      writeMark(dataDir, { complete: false });
      const rulebook = await openRulebook({ store: store.rules, builtins: loadBuiltinRules({ platform, timezone }) });
      const counts = await fillDemo({
        store,
        clock,
        rules: rulebook.all(),
        platform,
        seed,
        from,
        to,
        events,
        flows,
        flowsFrom: Math.max(from, Date.now() - retention.flowsDays * DAY_MS),
        analyseFrom: analysis.automaticFrom,
        onProgress: (done) => progress.report(done, events),
      });
      writeMark(dataDir, { complete: true });
      const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(2));
      return { ...counts, from: formatTime(from), to: formatTime(to), days, seed, seconds };
    } finally {
      progress.end();
      await store.close();
    }
  } catch (error) {
    throw explainFailure(error, settings);
  }
}

interface DemoMark {
  /** False if the demo was interrupted. */
  readonly complete: boolean;
}

function readMark(dataDir: string): DemoMark | undefined {
  try {
    return JSON.parse(readFileSync(join(dataDir, MARK), "utf8")) as DemoMark;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CommandFailure(`${join(dataDir, MARK)} cannot be read: ${(error as Error).message}`);
  }
}

function writeMark(dataDir: string, mark: DemoMark): void {
  writeFileSync(join(dataDir, MARK), `${JSON.stringify(mark)}\n`);
}

function occupied(dataDir: string): CommandFailure {
  const mark = readMark(dataDir);
  const folder = shown(dataDir);
  const remove = `Remove it: rm -r ${folder}`;
  if (!mark) {
    return new CommandFailure(
      `${folder} has events that are not from a demo. Nothing was written.\n` +
        "Use another folder with --data-dir, or add the demo to these events with --add; it cannot be separated from them later.",
      EXIT_WRONG_USE,
    );
  }
  if (!mark.complete) return new CommandFailure(`${folder} has a demo that was interrupted. ${remove}`);
  return new CommandFailure(
    `${folder} has a demo already. Nothing was written.\nServe it: npx tocsin demo --serve${flagFor(dataDir)}\n${remove}`,
    EXIT_WRONG_USE,
  );
}

/** A path as a person would type it. */
function shown(dataDir: string): string {
  const path = relative(process.cwd(), dataDir);
  return path === "" || path.startsWith("..") ? dataDir : path;
}

function flagFor(dataDir: string): string {
  const folder = shown(dataDir);
  return folder === FOLDER.data_dir ? "" : ` --data-dir ${folder}`;
}

function summaryOf({ events, alerts, flows, days, seconds }: Filled, { dataDir }: Settings): string {
  const counts = `${countOf(events, "event")}, ${countOf(alerts, "alert")} and ${countOf(flows, "flow")}`;
  const folder = shown(dataDir);
  return `Stored ${counts} over ${countOf(days, "day")} in ${folder} (${seconds.toFixed(1)} s). Remove them with: rm -r ${folder}`;
}

function nextSteps(filled: Filled, { settings }: LoadedSettings): string {
  const address = clientAddress(settings.host, settings.port || 8080);
  const folder = shown(settings.dataDir);
  const hidden =
    filled.events < EVENTS_WITH_SCENARIOS_MIN || filled.days < 2
      ? ""
      : "\nHidden in it: a guessed password, a port scan, a stranger who walked in, a telephone misused at night.";
  return `${summaryOf(filled, settings)}

Start the server in one terminal. It prints a key:

  npx tocsin demo --serve${flagFor(settings.dataDir)}

and ask it in another:

  KEY=$(npx tocsin keys create --name me --scopes all --plan enterprise --json --data-dir ${folder} | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')
  curl -H "Authorization: Bearer $KEY" "${address}/v1/alerts?status=open&severity=critical,high"
  curl -H "Authorization: Bearer $KEY" "${address}/v1/events?severity=critical"
  curl -H "Authorization: Bearer $KEY" "${address}/v1/events?search=203.0.113.66&per_page=5"
  curl -H "Authorization: Bearer $KEY" "${address}/api/v1/flows/top-talkers?dim=pair&window_secs=86400&limit=5"
  curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" "${address}/v1/events/search" \\
    -d '{"query":{"bool":{"must":[{"field":"type","equals":"login_failure"}]}},"aggs":{"who":{"terms":{"field":"raw.src_ip"}}},"limit":0}'
${hidden}`;
}

function readNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

function readPast(text: string): number {
  const ms = parseTime(text);
  if (ms !== undefined && ms <= Date.now()) return ms;
  throw new InvalidArgumentError("It must be an ISO 8601 time that is not in the future.");
}
