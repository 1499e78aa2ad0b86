import { InvalidArgumentError, type Command } from "commander";
import { clientAddress, type LoadedSettings } from "../config/config.ts";
import { demoEvents, EVENTS_WITH_SCENARIOS_MIN } from "../demo/demo.ts";
import { demoFlows, type DemoFlowsOptions } from "../demo/demo-flows.ts";
import { DAY_MS, formatTime } from "../lib/time.ts";
import type { EventDraft } from "../model/event.ts";
import type { NewEvent } from "../store/ports/event-engine.ts";
import type { Store } from "../store/ports/store.ts";
import { CommandFailure, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { print, printJson, startProgress } from "./terminal.ts";

const DAYS_MAX = 366;
const EVENTS_MAX = 50_000_000;
const FLOWS_MAX = 20_000_000;
const SEED_MAX = 4_294_967_295;
const GROUP_EVENTS = 500;
const GROUPS_AT_ONCE = 8;

interface DemoOptions {
  days: number;
  events: number;
  flows: number;
  seed: number;
  json?: true;
}

export function addDemo(program: Command): void {
  const command = program
    .command("demo")
    .description("fill the store with a realistic week of events from all sources, and flows")
    .option("--days <number>", "number of days up to now", readNumber(1, DAYS_MAX), 7)
    .option("--events <number>", "how many events", readNumber(1, EVENTS_MAX), 50_000)
    .option("--flows <number>", "about how many flows; 0 for none", readNumber(0, FLOWS_MAX), 100_000)
    .option("--seed <number>", "seed of the generator; the same seed gives the same events", readNumber(0, SEED_MAX), 1)
    .option("--json", "the summary as one JSON object");
  addSettingFlags(command, ["data_dir", "platform", "index_prefix"])
    .addHelpText(
      "after",
      `
Writes to the data folder directly: stop the server first, or use another folder. A second run adds the same amount again.

Examples:
  tocsin demo
  tocsin demo --days 30 --events 500000 --data-dir ./demo-data`,
    )
    .action(async ({ days, events, flows, seed, json }: DemoOptions) => {
      const loaded = requireSettings(command);
      const { settings } = loaded;
      const retentionDays = settings.retention.eventsDays;
      if (days > retentionDays) {
        throw new CommandFailure(
          `Events are kept for ${countOf(retentionDays, "day")} (retention.events_days): --days ${days} would be removed at the next start.`,
          EXIT_WRONG_USE,
        );
      }
      const { createLog } = await import("../lib/log.ts");
      const log = createLog({ level: "error", destination: process.stderr });
      const { openStore } = await import("../store/open-store.ts");
      const { Registry } = await import("prom-client");
      const startedAt = performance.now();
      const to = Date.now();
      const from = to - days * DAY_MS;
      let stored = 0;
      try {
        const { dataDir, platform, indexPrefix } = settings;
        const store = await openStore({ dataDir, platform, indexPrefix, registry: new Registry(), log });
        try {
          await appendAll(store, demoEvents({ seed, from, to, count: events, platform }), events);
          const flowsFrom = Math.max(from, to - settings.retention.flowsDays * DAY_MS);
          if (flows > 0) stored = await appendFlows(store, { seed, from: flowsFrom, to, rows: flows });
        } finally {
          await store.close();
        }
      } catch (error) {
        throw explainFailure(error, settings);
      }
      const seconds = (performance.now() - startedAt) / 1000;
      const span = { from: formatTime(from), to: formatTime(to) };
      if (json)
        printJson({
          events,
          flows: stored,
          ...span,
          seed,
          data_dir: settings.dataDir,
          seconds: Number(seconds.toFixed(2)),
        });
      else print(nextSteps({ events, flows: stored, days, seconds }, loaded));
    });
}

/** Keeps a fixed number of groups in flight: the store commits while the next ones are generated. */
async function appendAll(store: Store, drafts: Iterable<EventDraft>, total: number): Promise<void> {
  const progress = startProgress("Storing events");
  const groups = inGroups(drafts);
  let done = 0;
  const appendSome = async () => {
    for (const group of groups) {
      await store.events.append(group);
      done += group.length;
      progress.report(done, total);
    }
  };
  try {
    await Promise.all(Array.from({ length: GROUPS_AT_ONCE }, appendSome));
  } finally {
    progress.end();
  }
}

/** Appends one day at a time, with ids unique to this run: a second run adds the flows again. */
async function appendFlows(store: Store, question: DemoFlowsOptions): Promise<number> {
  const run = `demo-${question.to}-${process.pid}`;
  let rows = 0;
  let day = 0;
  for (const batch of demoFlows(question)) {
    await store.flows.append(batch, `${run}-${day++}`);
    rows += batch.count;
  }
  return rows;
}

function* inGroups(drafts: Iterable<EventDraft>): Generator<NewEvent[]> {
  let group: NewEvent[] = [];
  for (const draft of drafts) {
    group.push({ draft });
    if (group.length < GROUP_EVENTS) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

interface DemoSummary {
  readonly events: number;
  readonly flows: number;
  readonly days: number;
  readonly seconds: number;
}

function nextSteps({ events, flows, days, seconds }: DemoSummary, { settings, used }: LoadedSettings): string {
  const address = clientAddress(settings.host, settings.port || 8080);
  const given = used.some(({ path, origin }) => path === "data_dir" && origin.startsWith("flag"));
  const folder = given ? ` --data-dir ${settings.dataDir}` : "";
  const hidden =
    events < EVENTS_WITH_SCENARIOS_MIN || days < 2
      ? ""
      : "\nHidden in it: a guessed password, a port scan, a stranger who walked in, a telephone misused at night.";
  return `Stored ${countOf(events, "event")} and ${countOf(flows, "flow")} over ${countOf(days, "day")} in ${settings.dataDir} (${seconds.toFixed(1)} s).

Start the server in one terminal:

  npm start${folder && ` --${folder}`}

and ask it in another:

  KEY=$(npx tocsin keys create --name me --scopes all --plan enterprise --json${folder} | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')
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
