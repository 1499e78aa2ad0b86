import { DAY_MS } from "../src/lib/time.ts";
import type { Aggregation } from "../src/model/aggregation.ts";
import { ALWAYS, type Condition } from "../src/model/condition.ts";
import type { EventFilter, EventEngine } from "../src/store/ports/event-engine.ts";
import { NEWEST_FIRST } from "../src/store/opensearch/event-search.ts";
import { pathLead, valueTerm } from "../src/store/opensearch/event-terms.ts";
import type { BenchEngines } from "./cluster-engines.ts";
import type { ClusterQuestion } from "./cluster-questions.ts";

// Questions about events, each with the search that someone who knows our documents would send for it.

const OVERHEAD_MAX = 1.3;
const HOUR_MS = 3_600_000;
const PAGE = 50;
const GROUPS = 10;

interface EventQuestion {
  readonly name: string;
  readonly ask: (events: EventEngine, fromMs: number, toMs: number) => Promise<unknown>;
  readonly body: (range: object) => object;
  readonly lengthMs?: number;
}

const list = (name: string, filter: EventFilter, query: readonly object[], lengthMs?: number): EventQuestion => ({
  name: `newest 50 ${name}`,
  ask: (events, fromMs, toMs) => events.list({ ...filter, fromMs, toMs }, { mode: "page", page: 1, size: PAGE }),
  body: (range) => ({
    size: PAGE,
    track_total_hits: true,
    sort: NEWEST_FIRST,
    query: { bool: { filter: [range, ...query] } },
  }),
  ...(lengthMs !== undefined && { lengthMs }),
});

const aggregate = (name: string, aggregation: Aggregation, agg: object): EventQuestion => ({
  name,
  ask: (events, fromMs, toMs) =>
    events.search({
      condition: ALWAYS,
      fromMs,
      toMs,
      sort: [],
      limit: 0,
      aggs: [{ name: "a", aggregation }],
    }),
  body: (range) => ({
    size: 0,
    track_total_hits: true,
    query: { bool: { filter: [range] } },
    aggs: { a: agg },
  }),
});

const terms = (field: string, isTop = false) =>
  aggregate(
    `terms on ${field}`,
    { kind: "terms", field, size: GROUPS, aggs: [] },
    {
      terms: isTop
        ? { field, size: GROUPS }
        : { field: "terms", size: GROUPS, include: `${field.replaceAll(".", "\\.")}\u001f[123].*` },
    },
  );

const equals = (field: string, value: string): Condition => ({
  kind: "test",
  field,
  operator: "equals",
  value,
  ignoreCase: false,
});

const QUESTIONS: readonly EventQuestion[] = [
  list("of 7 days", {}, []),
  list("by severity", { severity: "high" }, [{ term: { severity: "high" } }]),
  list("by type of 24 h", { type: "login_failure" }, [{ term: { type: "login_failure" } }], DAY_MS),
  list("with a word", { search: "firewall" }, [{ term: { words: "firewall" } }]),
  list("with a prefix", { search: "log*" }, [{ prefix: { words: "log" } }]),
  {
    name: "search for a value of raw",
    ask: (events, fromMs, toMs) =>
      events.search({
        condition: equals("raw.protocol", "tcp"),
        fromMs,
        toMs,
        sort: [],
        limit: PAGE,
        aggs: [],
      }),
    body: (range) => ({
      size: PAGE,
      track_total_hits: true,
      sort: NEWEST_FIRST,
      query: { bool: { filter: [range, { term: { terms: pathLead("raw.protocol") + valueTerm("tcp") } }] } },
    }),
  },
  terms("type", true),
  terms("raw.src_ip"),
  terms("raw.domain"),
  aggregate(
    "hourly histogram",
    { kind: "histogram", field: "timestamp", interval: HOUR_MS, aggs: [] },
    { date_histogram: { field: "timestamp", fixed_interval: "1h" } },
  ),
];

export function eventQuestions({ eventsFrom, to }: BenchEngines): ClusterQuestion[] {
  return QUESTIONS.map(({ name, ask, body, lengthMs = to - eventsFrom }) => ({
    name: `events: ${name}`,
    kind: "events",
    ask: ({ events }, shiftMs) => ask(events, to - lengthMs + shiftMs, to),
    body: (shiftMs) => body({ range: { timestamp: { gte: to - lengthMs + shiftMs, lt: to } } }),
    ratioMax: OVERHEAD_MAX,
  }));
}
