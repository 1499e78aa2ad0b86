import { DAY_MS } from "../src/lib/time.ts";
import type { FlowEngine } from "../src/store/ports/flow-engine.ts";
import type { BenchEngines } from "./cluster-engines.ts";
import type { ClusterQuestion } from "./cluster-questions.ts";

// Questions about flows, each with the plain search that asks the same; that of top talkers is inexact.

const HOUR_MS = 3_600_000;
const PORT = 3389;
const OVERHEAD_MAX = 1.3;
const EXACT_OVERHEAD_MAX = 2;
const TOP = 20;

interface FlowQuestion {
  readonly name: string;
  readonly ask: (flows: FlowEngine, fromMs: number, toMs: number) => Promise<unknown>;
  readonly body: (range: object) => object;
  readonly lengthMs?: number;
  readonly ratioMax?: number;
}

const SUMS = { bytes: { sum: { field: "bytes" } }, packets: { sum: { field: "packets" } } };
const sums = (range: object, agg: object) => ({
  size: 0,
  track_total_hits: false,
  query: { bool: { filter: [range] } },
  aggs: { x: { ...agg, aggs: SUMS } },
});

const talkers = (dimension: "src" | "pair", field: string, hours: number, ratioMax: number): FlowQuestion => ({
  name: `top talkers by ${dimension}, ${hours} h`,
  ask: (flows, fromMs, toMs) => flows.topTalkers({ filter: { fromMs, toMs }, dimension, by: "bytes", limit: TOP }),
  body: (range) => sums(range, { terms: { field, size: TOP, order: { bytes: "desc" } } }),
  lengthMs: hours * HOUR_MS,
  ratioMax,
});

const QUESTIONS: readonly FlowQuestion[] = [
  {
    name: "list by bytes with a port filter and total, 24 h",
    ask: (flows, fromMs, toMs) => flows.list({ fromMs, toMs, port: PORT }, { sort: "bytes", descending: true }, 0, 50),
    body: (range) => ({
      size: 50,
      track_total_hits: true,
      sort: [{ bytes: "desc" }, { timestamp: "desc" }],
      query: {
        bool: { filter: [range, { bool: { should: [{ term: { src_port: PORT } }, { term: { dst_port: PORT } }] } }] },
      },
    }),
  },
  {
    name: "time series, 24 h by 15 minutes",
    ask: (flows, fromMs, toMs) =>
      flows.timeseries({ filter: { fromMs, toMs }, intervalMs: 900_000, by: "bytes", limit: 5 }),
    body: (range) => sums(range, { date_histogram: { field: "timestamp", fixed_interval: "900000ms" } }),
  },
  {
    name: "protocols, 24 h",
    ask: (flows, fromMs, toMs) => flows.protocols({ fromMs, toMs }),
    body: (range) => sums(range, { terms: { field: "protocol", size: 256 } }),
  },
  talkers("src", "src_ip", 1, OVERHEAD_MAX),
  talkers("src", "src_ip", 24, EXACT_OVERHEAD_MAX),
  talkers("pair", "pair", 1, EXACT_OVERHEAD_MAX),
  talkers("pair", "pair", 24, EXACT_OVERHEAD_MAX),
];

export function flowQuestions({ to }: BenchEngines): ClusterQuestion[] {
  return QUESTIONS.map(({ name, ask, body, lengthMs = DAY_MS, ratioMax = OVERHEAD_MAX }) => ({
    name: `flows: ${name}`,
    kind: "flows",
    ask: ({ flows }, shiftMs) => ask(flows, to - lengthMs + shiftMs, to),
    body: (shiftMs) => body({ range: { timestamp: { gte: to - lengthMs + shiftMs, lt: to } } }),
    ratioMax,
  }));
}
