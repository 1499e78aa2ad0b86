import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { DAY_MS, startOfDay } from "../src/lib/time.ts";
import { randomFrom, type Random } from "../src/demo/random.ts";
import { eventsPart, relatedPart, seenPart } from "../src/api/entity-parts.ts";
import type { Entity } from "../src/model/entity.ts";
import type { EventDraft, JsonObject } from "../src/model/event.ts";
import type { Store } from "../src/store/ports/store.ts";
import { openStore } from "../src/store/open-store.ts";
import { timed } from "./bench.ts";
import { INDEX_PREFIX, PLATFORM } from "./dataset.ts";
import { DATA_FOLDER, ms, spreadOf, type Measurement } from "./figures.ts";

// Searches for entities as someone types. The time depends on the distinct entities of each day, not on the number of events:
// most events here have an address of their own, so that one million stands for many more.

const EVENTS = 1_000_000;
const DAYS = 30;
const APPEND_SIZE = 2000;
const ROUNDS = 9;
const CPU_MS_MAX = 100;
const PAGE_CPU_MS_MAX = 1000;
const PAGES: readonly Entity[] = [
  { kind: "address", value: "10.20.3.7" },
  { kind: "user", value: "user12" },
  { kind: "device", value: "02:00:5e:00:00:07" },
  { kind: "door", value: "Loading dock" },
];
const SEARCHES = ["1", "10.", "10.20.3", "192.0.2.17", "us", "user12", "loading", "02:00:5e", "ab:0c", "nobody"];

export async function entities(): Promise<readonly Measurement[]> {
  await mkdir(DATA_FOLDER, { recursive: true });
  const dataDir = await mkdtemp(join(DATA_FOLDER, "entities-"));
  const registry = new Registry();
  const store = await openStore({
    dataDir,
    platform: PLATFORM,
    indexPrefix: INDEX_PREFIX,
    registry,
    log: pino({ level: "warn" }),
  });
  try {
    const toMs = startOfDay(Date.now()) + DAY_MS;
    const range = { fromMs: toMs - DAYS * DAY_MS, toMs };
    const filled = await timed(() => fill(store, range.fromMs));
    // The newest rows stay in memory for up to a minute.
    await store.events.search({ condition: { kind: "all", of: [] }, sort: [], limit: 0, aggs: [] });
    const measurements: Measurement[] = [];
    for (const search of SEARCHES) {
      const took: number[] = [];
      const cpu: number[] = [];
      let found = { total: 0, days: 0 };
      for (let round = 0; round < ROUNDS; round++) {
        const before = process.cpuUsage();
        const answer = await timed(() => store.events.entities({ search, ...range, limit: 20 }));
        const { user, system } = process.cpuUsage(before);
        took.push(answer.ms);
        cpu.push((user + system) / 1000);
        found = { total: answer.value.total, days: (toMs - answer.value.fromMs) / DAY_MS };
      }
      const spread = spreadOf(took);
      const cpuP50 = spreadOf(cpu).p50;
      measurements.push({
        name: `entities with "${search}": ${found.total.toLocaleString("en")} in ${found.days} days`,
        result: `p95 ${ms(spread.p95)}; p50 ${ms(spread.p50)}; CPU time p50 ${ms(cpuP50)}`,
        target: `CPU time at most ${CPU_MS_MAX} ms`,
        met: cpuP50 <= CPU_MS_MAX,
        values: { ...spread, ...found, cpuP50, fillMs: filled.ms },
      });
    }
    for (const entity of PAGES) measurements.push(await measurePage(store, entity, toMs));
    return measurements;
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true });
  }
}

/** The parts of an entity's page that read events, as the API asks for them: at the same time. */
async function measurePage(store: Store, entity: Entity, toMs: number): Promise<Measurement> {
  const range = { fromMs: toMs - 7 * DAY_MS, toMs, intervalMs: 3_600_000 };
  const query = { store, entity, range, context: { client: "key_bench" } };
  const took: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    took.push((await timed(() => Promise.all([seenPart(query), eventsPart(query), relatedPart(query)]))).ms);
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / 1000);
  }
  const spread = spreadOf(took);
  const cpuP50 = spreadOf(cpu).p50;
  return {
    name: `the page of ${entity.kind} ${entity.value}, 7 days`,
    result: `p95 ${ms(spread.p95)}; p50 ${ms(spread.p50)}; CPU time p50 ${ms(cpuP50)}`,
    target: `CPU time at most ${PAGE_CPU_MS_MAX} ms`,
    met: cpuP50 <= PAGE_CPU_MS_MAX,
    values: { ...spread, cpuP50 },
  };
}

async function fill(store: Store, fromMs: number): Promise<void> {
  const random = randomFrom(20_261_115);
  const ahead: Promise<unknown>[] = [];
  for (let at = 0; at < EVENTS; at += APPEND_SIZE) {
    const chunk = Array.from({ length: APPEND_SIZE }, (_, nth) => ({
      draft: draft(random, fromMs + Math.floor(((at + nth) * DAYS * DAY_MS) / EVENTS)),
    }));
    if (ahead.length >= 4) await ahead.shift();
    ahead.push(store.events.append(chunk));
  }
  await Promise.all(ahead);
}

const hex = (random: Random) => random.below(256).toString(16).padStart(2, "0");
const address = (random: Random) =>
  [random.between(1, 220), random.below(256), random.below(256), random.below(256)].join(".");

function draft(random: Random, timestampMs: number): EventDraft {
  const raw: JsonObject = {
    dst_ip: `10.20.${random.below(8)}.${random.below(256)}`,
    message: "a line as devices write it",
  };
  if (random.onceIn(5)) raw["src_ip"] = `10.20.${random.below(8)}.${random.below(256)}`;
  else raw["src_ip"] = address(random);
  if (random.onceIn(5)) raw["user"] = `user${random.below(2000)}`;
  if (random.onceIn(5)) raw["src_mac"] = `02:00:5e:${hex(random)}:${hex(random)}:0c`;
  if (random.onceIn(10)) raw["device_mac"] = `02:00:5e:00:00:${hex(random)}`;
  if (random.onceIn(20)) raw["door"] = random.onceIn(2) ? "Loading dock" : `Door ${random.below(60)}`;
  return { type: "test", source: "custom", severity: "info", class: "network", timestampMs, raw, enrichment: {} };
}
