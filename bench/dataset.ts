import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { demoEvents } from "../src/demo/demo.ts";
import { DAY_MS } from "../src/lib/time.ts";
import type { EventDraft } from "../src/model/event.ts";
import { openStore } from "../src/store/open-store.ts";
import { DATA_FOLDER } from "./figures.ts";

// The dataset of all benches: built once and kept for later runs.

export const PLATFORM = "platform";
export const INDEX_PREFIX = "tocsin";
const DAYS = 7;
const APPEND_SIZE = 2000;
const APPENDS_AHEAD = 4;
const SEED = 20_261_115;

export interface Dataset {
  readonly folder: string;
  readonly events: number;
  readonly fromMs: number;
  readonly toMs: number;
}

export async function prepareDataset(events: number): Promise<Dataset> {
  const folder = join(DATA_FOLDER, `events-${events}`);
  const facts = `${folder}.json`;
  const known = await readFile(facts, "utf8").catch(() => undefined);
  if (known) return JSON.parse(known) as Dataset;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const toMs = Date.now();
  const dataset: Dataset = { folder, events, fromMs: toMs - DAYS * DAY_MS, toMs };
  await fill(dataset);
  await writeFile(facts, JSON.stringify(dataset));
  return dataset;
}

async function fill({ folder, events, fromMs, toMs }: Dataset): Promise<void> {
  const store = await openStore({
    dataDir: folder,
    platform: PLATFORM,
    indexPrefix: INDEX_PREFIX,
    registry: new Registry(),
    log: pino({ level: "warn" }),
  });
  const startedAt = performance.now();
  let stored = 0;
  let shownAt = 0;
  const ahead: Promise<unknown>[] = [];
  let chunk: { draft: EventDraft }[] = [];
  const flush = async () => {
    const size = chunk.length;
    if (ahead.length >= APPENDS_AHEAD) await ahead.shift();
    ahead.push(store.events.append(chunk));
    chunk = [];
    stored += size;
    if (performance.now() - shownAt < 1000) return;
    shownAt = performance.now();
    const rate = stored / ((shownAt - startedAt) / 1000);
    showProgress(`building ${events} events: ${Math.floor((100 * stored) / events)} %, ${Math.round(rate)}/s`);
  };
  for (const draft of benchEvents({ seed: SEED, fromMs, toMs, count: events })) {
    chunk.push({ draft });
    if (chunk.length === APPEND_SIZE) await flush();
  }
  if (chunk.length > 0) await flush();
  await Promise.all(ahead);
  // As in a long-running service: no bench should compete with detection that catches up on five million events.
  const upTo = (await store.events.lastArrival())!;
  await store.alerts.commit({ alerts: [], timeline: [], detected: { upTo, matches: [], seen: [] } });
  await store.close();
  const seconds = (performance.now() - startedAt) / 1000;
  showProgress(`built ${events} events in ${Math.round(seconds)} s\n`);
}

function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`);
  else process.stderr.write(line.endsWith("\n") ? line : `${line}\n`);
}

interface BenchEvents {
  readonly seed: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

/** The demo's week with the log lines of a real device: about 450 bytes per event. */
export function* benchEvents({ seed, fromMs, toMs, count }: BenchEvents): Iterable<EventDraft> {
  for (const draft of demoEvents({ seed, from: fromMs, to: toMs, count, platform: PLATFORM })) {
    yield { ...draft, raw: { ...draft.raw, message: logLine(draft) } };
  }
}

function logLine({ type, severity, timestampMs, raw }: EventDraft): string {
  const facts = Object.entries(raw).slice(0, 3);
  const words = facts.map(([name, value]) => `${name}=${typeof value === "object" ? "-" : value}`).join(" ");
  return `<134>${new Date(timestampMs).toISOString().slice(0, 19)} ${type} ${severity} ${words}`;
}

/** A writable copy. */
export async function copyDataset({ folder }: Dataset): Promise<string> {
  const copy = `${folder}-copy`;
  await rm(copy, { recursive: true, force: true });
  await cp(folder, copy, { recursive: true, mode: constants.COPYFILE_FICLONE });
  // Otherwise the system flushes the copy half a minute later, during the measurement.
  execFileSync("sync");
  return copy;
}
