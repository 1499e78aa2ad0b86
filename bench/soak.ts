import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { memoryOf, withServer, type Serving } from "./bench.ts";
import { copyDataset, prepareDataset } from "./dataset.ts";
import { prepareRules } from "./detect-ingest.ts";
import { startSoakLoad, type SoakLoad } from "./soak-load.ts";
import { partsOf, reportOf, verdictOf, type MemorySample } from "./soak-report.ts";

// `npm run soak` puts a steady mixed load on the real server for an hour and says whether its memory ends flat.

const MINUTES_DEFAULT = 60;
const EVENTS_DEFAULT = 200_000;
const SAMPLES = 180;
const SAMPLE_MS_MAX = 10_000;
const SHOW_MS = 60_000;
const EXIT_GROWING = 1;
const EXIT_WRONG_USE = 2;

const usage = `npm run soak -- [--minutes N] [--events N]
--minutes N: how long; default ${MINUTES_DEFAULT}
--events N: events that are there before, over 7 days; default ${EVENTS_DEFAULT}
Exit codes: 0 the memory ends flat, ${EXIT_GROWING} it still grows or the server failed, ${EXIT_WRONG_USE} wrong use.\n`;

/** What flow summaries remember of late records fills within minutes, not within the hour of the default. */
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
    options: { minutes: { type: "string" }, events: { type: "string" }, help: { type: "boolean", short: "h" } },
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
    const answers = await withServer(folder, (server) => soak(server, minutes * 60_000, samples), variables);
    const failed = [...answers].filter(([kind]) => / (?!503)[045]\d*$/.test(kind) || / \D+$/.test(kind));
    const { isFlat, text } = verdictOf(samples);
    process.stdout.write(`\n${reportOf(samples)}\n\nanswers: ${showCounts([...answers])}\n${text}\n`);
    if (failed.length > 0) process.stdout.write(`failed: ${showCounts(failed)}\n`);
    return isFlat && failed.length === 0 ? 0 : EXIT_GROWING;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function soak(server: Serving, durationMs: number, samples: MemorySample[]): Promise<SoakLoad["answers"]> {
  await prepareRules(server);
  const load = await startSoakLoad(server);
  const startedAt = performance.now();
  const everyMs = Math.min(SAMPLE_MS_MAX, durationMs / SAMPLES);
  let shownAt = 0;
  for (let ms = 0; ms < durationMs; ms = performance.now() - startedAt) {
    await Promise.race([sleep(everyMs), load.failed]);
    const metrics = await (await fetch(`${server.address}/metrics`)).text();
    const { total, own } = memoryOf(server.pid);
    samples.push({ seconds: ms / 1000, resident: total, own, parts: partsOf(metrics) });
    if (performance.now() - shownAt < SHOW_MS) continue;
    shownAt = performance.now();
    const [rss, anonymous] = [total, own].map((bytes) => Math.round(bytes / 1e6));
    process.stderr.write(`${Math.round(ms / 60_000)} min: ${rss} MB resident, ${anonymous} without file pages\n`);
  }
  await load.stop();
  return load.answers;
}

const showCounts = (counts: readonly (readonly [string, number])[]) =>
  counts.map(([kind, count]) => `${kind}: ${count.toLocaleString("en")}`).join(", ");

process.exitCode = await run();
