import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { memoryOf, withServer, type Serving } from "./bench.ts";
import { copyDataset, prepareDataset } from "./dataset.ts";
import { prepareRules } from "./detect-ingest.ts";
import { startLargeLoad } from "./soak-large.ts";
import { startSoakLoad } from "./soak-load.ts";
import { partsOf, reportOf, verdictOf, type MemorySample } from "./soak-report.ts";
import type { SoakLoad } from "./soak-work.ts";

// `npm run soak` puts a steady mixed load on the real server for an hour and reports whether its memory stays flat.

const MINUTES_DEFAULT = 60;
const EVENTS_DEFAULT = 200_000;
const SAMPLES = 180;
const SAMPLE_MS_MAX = 10_000;
const SHOW_MS = 60_000;
const EXIT_GROWING = 1;
const EXIT_WRONG_USE = 2;

const usage = `npm run soak -- [--minutes N] [--events N] [--large] [--before LINE]
--minutes N: duration; default ${MINUTES_DEFAULT}
--events N: events in the store at the start, over 7 days; default ${EVENTS_DEFAULT}
--large: events and batches of the maximum size with constant exports; the server must survive, but its memory may grow
--before LINE: a shell line to run before the server in the same shell, for example to set a memory limit
Exit codes: 0 memory is flat, the engines keep their limits and nothing failed; ${EXIT_GROWING} otherwise; ${EXIT_WRONG_USE} wrong usage.\n`;

/** Shortens the flow summaries' memory of late records from an hour, so that it is full within minutes. */
const LATE_SECONDS = "300";

const variables = {
  TOCSIN_SYSLOG_PORT: "0",
  TOCSIN_NETFLOW_PORT: "0",
  TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1",
  TOCSIN_FLOWS_ADDRESSES: "127.0.0.1",
  TOCSIN_FLOWS_LATE_SECONDS: LATE_SECONDS,
};

async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string" },
      events: { type: "string" },
      large: { type: "boolean", default: false },
      before: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const minutes = Number(values.minutes ?? MINUTES_DEFAULT);
  const events = Number(values.events ?? EVENTS_DEFAULT);
  if (values.help || !(minutes > 0) || !Number.isSafeInteger(events) || events < 1) {
    process.stdout.write(usage);
    return values.help ? 0 : EXIT_WRONG_USE;
  }
  const folder = await copyDataset(await prepareDataset(events));
  const samples: MemorySample[] = [];
  try {
    const { responses, failures, eventsPerSecond } = await withServer(
      folder,
      (server) => soak(server, minutes * 60_000, values.large ? startLargeLoad : startSoakLoad, samples),
      variables,
      values.before,
    );
    const { isFlat, text } = verdictOf(samples);
    process.stdout.write(`\n${reportOf(samples)}\n\n`);
    process.stdout.write(
      `${Math.round(eventsPerSecond)} events/s stored\nresponses: ${showCounts(responses)}\n${text}\n`,
    );
    if (failures.size > 0) process.stdout.write(`failed: ${showCounts(failures)}\n`);
    return (isFlat || values.large) && failures.size === 0 ? 0 : EXIT_GROWING;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function soak(
  server: Serving,
  durationMs: number,
  start: (server: Serving) => SoakLoad | Promise<SoakLoad>,
  samples: MemorySample[],
): Promise<SoakLoad & { readonly eventsPerSecond: number }> {
  await prepareRules(server);
  const readMetrics = async () => (await fetch(`${server.address}/metrics`)).text();
  const eventsBefore = storedEvents(await readMetrics());
  const load = await start(server);
  const startedAt = performance.now();
  const everyMs = Math.min(SAMPLE_MS_MAX, durationMs / SAMPLES);
  let shownAt = 0;
  for (let ms = 0; ms < durationMs; ms = performance.now() - startedAt) {
    await Promise.race([sleep(everyMs), load.failed]);
    const metrics = await readMetrics();
    const { total, own } = memoryOf(server.pid);
    samples.push({ seconds: ms / 1000, resident: total, own, parts: partsOf(metrics) });
    if (performance.now() - shownAt < SHOW_MS) continue;
    shownAt = performance.now();
    const [rss, anonymous] = [total, own].map((bytes) => Math.round(bytes / 1e6));
    process.stderr.write(`${Math.round(ms / 60_000)} min: ${rss} MB resident, ${anonymous} without file pages\n`);
  }
  await load.stop();
  const seconds = (performance.now() - startedAt) / 1000;
  return { ...load, eventsPerSecond: (storedEvents(await readMetrics()) - eventsBefore) / seconds };
}

const storedEvents = (metrics: string) => Number(/^tocsin_events_rows (\d+)$/m.exec(metrics)![1]);

const showCounts = (counts: ReadonlyMap<string, number>) =>
  [...counts].map(([kind, count]) => `${kind}: ${count.toLocaleString("en")}`).join(", ");

process.exitCode = await run();
