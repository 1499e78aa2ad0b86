import { parseExact } from "../src/lib/exact-json.ts";
import type { Event, EventDraft } from "../src/model/event.ts";
import type { FlowRows } from "../src/model/flow.ts";
import { dailyIndexName } from "../src/store/opensearch/daily-index.ts";
import { documentText, eventTemplate } from "../src/store/opensearch/event-documents.ts";
import { FlowDocuments, flowTemplate } from "../src/store/opensearch/flow-documents.ts";
import { putIndexTemplate } from "../src/store/opensearch/index-template.ts";
import type { OpenSearchClient } from "../src/store/opensearch/opensearch-client.ts";
import { pino } from "pino";
import { timed } from "./bench.ts";
import type { BenchEngines } from "./cluster-engines.ts";
import { benchEvents } from "./dataset.ts";
import { ms, perSecond, spreadOf, type Measurement } from "./figures.ts";
import { benchFlows } from "./flow-rows.ts";

// What the service adds to the storing of documents, and how soon a list shows what was submitted. Service and plain bulk
// requests take turns with the same events or rows. Both end when a search finds everything.

const SEED = 20_261_119;
const PLAIN = "plain";
/** Days that hold nothing else. */
const FROM = Date.UTC(2026, 9, 1, 6);
const HOUR_MS = 3_600_000;
const WRITTEN_BEFORE = FROM + 40 * 24 * HOUR_MS;
const INGEST_MIN = 0.8;
const FIRST_LIST_MS_MAX = 300;
const REFRESH_MS = 200;

const EVENT_ROUNDS = 12;
const EVENTS_PER_REQUEST_MAX = 2000;
/** Requests at the same time. */
const EVENT_REQUESTS = 4;
const FLOW_ROUNDS = 12;
const ROWS_PER_ROUND_MAX = 10_000;
const ROWS_PER_REQUEST = 5000;
/** A small run writes the same share of its data. */
const WRITTEN_SHARE = 0.1;
const WARM_UP = 2;
const SUBMITS = 25;

export async function compareWrites(engines: BenchEngines): Promise<Measurement[]> {
  const { client } = engines;
  const log = pino({ level: "warn" });
  const sizes = { shards: 1, replicas: 0 };
  await putIndexTemplate(client, eventTemplate({ name: `${PLAIN}-events`, ...sizes, refreshMs: REFRESH_MS }), log);
  await putIndexTemplate(client, flowTemplate({ name: `${PLAIN}-flows`, ...sizes }), log);
  await removeWritten(engines);
  try {
    return [await compareEvents(engines), await compareFlows(engines), await firstList(engines)];
  } finally {
    await removeWritten(engines);
  }
}

async function removeWritten({ client, cluster, embedded }: BenchEngines): Promise<void> {
  await client.send(
    { operation: "bench" },
    { method: "DELETE", path: `/${PLAIN}-events-*,${PLAIN}-flows-*`, query: { ignore_unavailable: true } },
  );
  for (const { events, flows } of [cluster, embedded]) {
    await events.removeBefore(WRITTEN_BEFORE);
    await flows.removeBefore(WRITTEN_BEFORE);
  }
}

type Side = "cluster" | "plain" | "embedded";

/** Sums of time by side, without the first rounds. */
async function inTurns(rounds: number, sidesOf: (round: number) => Promise<Record<Side, () => Promise<unknown>>>) {
  const spent: Record<Side, number> = { cluster: 0, plain: 0, embedded: 0 };
  for (let round = 0; round < rounds + WARM_UP; round++) {
    const entries = Object.entries(await sidesOf(round)) as [Side, () => Promise<unknown>][];
    for (const [side, write] of round % 2 === 0 ? entries : entries.toReversed()) {
      const { ms: took } = await timed(write);
      if (round >= WARM_UP) spent[side] += took;
    }
  }
  return spent;
}

function ingestMeasurement(name: string, rows: number, spent: Record<Side, number>): Measurement {
  const rate = (side: Side) => (rows / spent[side]) * 1000;
  const ratio = rate("cluster") / rate("plain");
  return {
    name,
    result: `${perSecond(rate("cluster"))}; embedded ${perSecond(rate("embedded"))}`,
    baseline: `${perSecond(rate("plain"))} with plain bulk requests of the same documents`,
    ratio,
    target: `at least ${INGEST_MIN}`,
    met: ratio >= INGEST_MIN,
    values: { cluster: rate("cluster"), plain: rate("plain"), embedded: rate("embedded") },
  };
}

async function compareEvents({ cluster, embedded, client, events }: BenchEngines): Promise<Measurement> {
  const perRequest = Math.min(
    EVENTS_PER_REQUEST_MAX,
    Math.ceil((events * WRITTEN_SHARE) / EVENT_ROUNDS / EVENT_REQUESTS),
  );
  const perRound = perRequest * EVENT_REQUESTS;
  const spent = await inTurns(EVENT_ROUNDS, async (round) => {
    const drafts = [...benchEvents({ seed: SEED + round, fromMs: FROM, toMs: FROM + HOUR_MS, count: perRound })];
    const parts = chunksOf(drafts, perRequest);
    const bulks = parts.map((part, nth) =>
      part.map((draft, at) => eventLines(draft, `${round}-${nth}-${at}`)).join(""),
    );
    const append = (store: BenchEngines["cluster"]) =>
      Promise.all(parts.map((part) => store.events.append(part.map((draft) => ({ draft })))));
    return {
      cluster: () => append(cluster),
      plain: () => Promise.all(bulks.map((lines) => bulk(client, lines, { refresh: "wait_for" }))),
      embedded: () => append(embedded),
    };
  });
  return ingestMeasurement("events in, until they are visible", EVENT_ROUNDS * perRound, spent);
}

function eventLines(draft: EventDraft, id: string): string {
  const { timestampMs, rawText: _rawText, ...rest } = draft;
  const text = JSON.stringify({ id, ...rest, timestamp: new Date(timestampMs).toISOString() });
  const document = documentText({ text, event: parseExact(text) as Event, arrivedMs: timestampMs });
  return `{"create":{"_index":"${dailyIndexName(`${PLAIN}-events`, timestampMs)}","_id":"${id}"}}\n${document}\n`;
}

async function compareFlows({ cluster, embedded, client, flows }: BenchEngines): Promise<Measurement> {
  const perRound = Math.min(ROWS_PER_ROUND_MAX, Math.ceil((flows * WRITTEN_SHARE) / FLOW_ROUNDS));
  const all = [...benchFlows(SEED, FROM, FLOW_ROUNDS + WARM_UP, perRound)];
  const spent = await inTurns(FLOW_ROUNDS, async (round) => {
    const rows = all[round]!;
    const batchId = `write-${round}`;
    const bulks = flowLines(rows, batchId);
    return {
      cluster: () => cluster.flows.append(rows, batchId),
      plain: async () => {
        await Promise.all(bulks.map((lines) => bulk(client, lines, {})));
        await client.send({ operation: "bench" }, { method: "POST", path: `/${PLAIN}-flows-*/_refresh` });
      },
      embedded: () => embedded.flows.append(rows, batchId),
    };
  });
  return ingestMeasurement("flows in, until they are visible", FLOW_ROUNDS * perRound, spent);
}

function flowLines(rows: FlowRows, batchId: string): string[] {
  const documents = new FlowDocuments(rows, batchId);
  const lines = Array.from({ length: rows.count }, (_, row) => {
    const index = dailyIndexName(`${PLAIN}-flows`, documents.timestamp(row));
    return `{"create":{"_index":"${index}","_id":"${documents.id(row)}"}}\n${documents.text(row)}\n`;
  });
  return chunksOf(lines, ROWS_PER_REQUEST).map((part) => part.join(""));
}

function bulk(client: OpenSearchClient, lines: string, query: Record<string, string>): Promise<unknown> {
  return client.send({ operation: "bench" }, { method: "POST", path: "/_bulk", query, body: lines, isLines: true });
}

async function firstList({ cluster, embedded }: BenchEngines): Promise<Measurement> {
  const took: Record<"cluster" | "embedded", number[]> = { cluster: [], embedded: [] };
  let nth = 0;
  for (const draft of benchEvents({ seed: SEED, fromMs: FROM, toMs: FROM + HOUR_MS, count: SUBMITS + WARM_UP })) {
    for (const [side, { events }] of [
      ["cluster", cluster],
      ["embedded", embedded],
    ] as const) {
      const type = `bench_first_${nth}`;
      const { ms: spent, value } = await timed(async () => {
        await events.append([{ draft: { ...draft, type } }]);
        return events.list({ type }, { mode: "page", page: 1, size: 50 });
      });
      if (value.total !== 1) throw new Error("the first list after a submit lacks the event");
      if (nth >= WARM_UP) took[side].push(spent);
    }
    nth++;
  }
  const [ours, one] = [spreadOf(took.cluster), spreadOf(took.embedded)];
  return {
    name: "submit of an event and the first list with it",
    result: `p50 ${ms(ours.p50)}; p95 ${ms(ours.p95)}; embedded p50 ${ms(one.p50)}`,
    target: `p50 at most ${FIRST_LIST_MS_MAX} ms`,
    met: ours.p50 <= FIRST_LIST_MS_MAX,
    values: { cluster: ours.p50, clusterP95: ours.p95, embedded: one.p50 },
  };
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, nth) => items.slice(nth * size, (nth + 1) * size));
}
