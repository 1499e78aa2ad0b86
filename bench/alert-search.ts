import { isDeepStrictEqual } from "node:util";
import { DatabaseSync } from "node:sqlite";
import { DAY_MS } from "../src/lib/time.ts";
import { casesFile } from "../src/store/files/layout.ts";
import { ALERTS, alertsFolder } from "./alerts.ts";
import { timed, withServer, type Serving } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Searches over a hundred thousand alerts through HTTP, as the console asks them. The baseline is the same question in SQL on the
// same rows, in this process and without HTTP, answered by SQLite with a scan; both must give the same counts.

const ROUNDS = 15;
const SEARCH_P95_MS_MAX = 50;
const DOCUMENTS_P95_MS_MAX = 5000;

interface Found {
  readonly data: {
    readonly total: number;
    readonly aggregations: Record<string, { readonly buckets: { readonly key: string; readonly count: number }[] }>;
  };
}

interface Question {
  readonly name: string;
  readonly body: object;
  /** Rows of key and count, the same as the first aggregation, or one row with the total. */
  readonly sql: string;
  readonly p95MsMax?: number;
}

const isUnresolved = { field: "status", in: ["open", "acknowledged"] };
const bySeverity = { severity: { terms: { field: "severity" } } };
const DAY_SQL = `strftime('%Y-%m-%dT00:00:00.000Z', created_at / 1000, 'unixepoch')`;
const TOP = "GROUP BY 1 ORDER BY 2 DESC, 1";

const QUESTIONS: readonly Question[] = [
  {
    name: "strip by day and severity, all alerts",
    body: { aggs: { a: { histogram: { field: "created_at", interval: "1d" }, aggs: bySeverity } }, limit: 0 },
    sql: `SELECT ${DAY_SQL}, count(*), sum(severity = 'critical'), sum(severity = 'high'), sum(severity = 'medium'), sum(severity = 'low') FROM alerts GROUP BY 1 ORDER BY 1`,
  },
  {
    name: "groups by rule with severities and newest event, unresolved alerts",
    body: {
      query: { bool: { must: [isUnresolved] } },
      aggs: {
        a: {
          terms: { field: "rule_name", size: 100 },
          aggs: { ...bySeverity, last: { stats: { field: "last_event_at" } } },
        },
      },
      limit: 0,
    },
    sql: `SELECT rule_name, count(*), sum(severity = 'critical'), sum(severity = 'high'), max(last_event_at) FROM alerts WHERE status <> 'resolved' ${TOP}`,
  },
  {
    name: "four facets",
    body: {
      aggs: {
        a: { terms: { field: "source" } },
        b: { terms: { field: "status" } },
        c: { terms: { field: "assignee" } },
        d: { terms: { field: "group.value" } },
      },
      limit: 0,
    },
    sql: `SELECT source, count(*) FROM alerts ${TOP}`,
  },
  {
    name: "facet of entities",
    body: { aggs: { a: { terms: { field: "entities", size: 10 } } }, limit: 0 },
    sql: `SELECT value, count(*) FROM alerts, json_each(entities) ${TOP} LIMIT 10`,
  },
  {
    name: "three filters, by severity and last event",
    body: {
      query: {
        bool: {
          must: [isUnresolved, { field: "group.value", cidr: "192.0.0.0/18" }, { field: "event_count", gt: 500 }],
        },
      },
      sort: { severity: "desc", last_event_at: "desc" },
    },
    sql: `SELECT '', count(*) FROM alerts WHERE status <> 'resolved' AND event_count > 500
      AND CAST(substr(group_value, 7) AS INTEGER) < 64`,
  },
  {
    name: "country of every alert, which is in the documents",
    body: { aggs: { a: { terms: { field: "enrichment.geo.country" } } }, limit: 0 },
    sql: `SELECT document ->> '$.enrichment.geo.country', count(*) FROM documents ${TOP}`,
    p95MsMax: DOCUMENTS_P95_MS_MAX,
  },
];

export async function alertSearch(): Promise<readonly Measurement[]> {
  const folder = await alertsFolder();
  return withServer(folder, async (server) => {
    const db = new DatabaseSync(casesFile(folder), { readOnly: true });
    const measurements: Measurement[] = [];
    for (const question of QUESTIONS) measurements.push(await measure(server, db, question));
    measurements.push(await trends(server));
    db.close();
    return measurements;
  });
}

async function measure(server: Serving, db: DatabaseSync, question: Question): Promise<Measurement> {
  const { name, body, sql, p95MsMax = SEARCH_P95_MS_MAX } = question;
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  const [took, baseline]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const ours = await timed(() => server.post<Found>("/v1/alerts/search", body));
    const theirs = await timed(async () => statement.all() as unknown as [string, number][]);
    const { total, aggregations } = ours.value.data;
    const counted = aggregations["a"]?.buckets.map(({ key, count }) => [key, count]) ?? [["", total]];
    const wanted = theirs.value.map(([key, count]) => [key, count]);
    if (!isDeepStrictEqual(counted, wanted)) throw new Error(`${name}: the answers differ`);
    took.push(ours.ms);
    baseline.push(theirs.ms);
  }
  const [ours, theirs] = [spreadOf(took), spreadOf(baseline)];
  return {
    name: `search over ${ALERTS.toLocaleString("en")} alerts: ${name}`,
    result: `p95 ${ms(ours.p95)}; p50 ${ms(ours.p50)}`,
    baseline: `SQL p50 ${ms(theirs.p50)}`,
    ratio: ours.p50 / theirs.p50,
    target: `p95 at most ${p95MsMax} ms`,
    met: ours.p95 <= p95MsMax,
    values: { p50: ours.p50, p95: ours.p95, sqlP50: theirs.p50 },
  };
}

async function trends(server: Serving): Promise<Measurement> {
  const from = new Date(Date.now() - 90 * DAY_MS).toISOString();
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    took.push((await timed(() => server.get(`/v1/alerts/stats?interval=1d&from=${from}`))).ms);
  }
  const { p50, p95 } = spreadOf(took);
  return {
    name: `trends of ${ALERTS.toLocaleString("en")} alerts by day`,
    result: `p95 ${ms(p95)}; p50 ${ms(p50)}`,
    target: `p95 at most ${SEARCH_P95_MS_MAX} ms`,
    met: p95 <= SEARCH_P95_MS_MAX,
    values: { p50, p95 },
  };
}
