import { parseExact } from "../lib/exact-json.ts";
import { parseAddress, parseCidr } from "../lib/ip.ts";
import { formatTime, parseTime } from "../lib/time.ts";
import { alertView } from "../model/alert.ts";
import { entityText } from "../model/alert-entity.ts";
import { STATUSES } from "../model/alert-state.ts";
import type { AggregationResult, BucketsResult } from "../model/aggregation.ts";
import type { Condition } from "../model/condition.ts";
import { ENTITY_FIELDS, ENTITY_KINDS, entitiesOf, type Entity } from "../model/entity.ts";
import type { EntitySummary } from "../model/entity-query.ts";
import { SEVERITIES, type Event } from "../model/event.ts";
import { timeseriesPoints, type Series, type Traffic } from "../model/flow-query.ts";
import type { QueryContext } from "../store/ports/query-context.ts";
import type { Store } from "../store/ports/store.ts";

// The parts of an entity's page, each a few queries of bounded size.

const TYPES_MAX = 50;
/** Events that are read for the entities that occur with this one. */
export const RELATED_EVENTS_MAX = 1000;
/** Of each kind. */
const RELATED_ENTITIES_MAX = 50;
const ALERTS_MAX = 10;
const PEERS_MAX = 10;
const PORTS_MAX = 10;

export interface EntityRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly intervalMs: number;
}

export interface EntityPartQuery {
  readonly store: Pick<Store, "events" | "alerts" | "flows">;
  readonly entity: Entity;
  readonly range: EntityRange;
  readonly context: QueryContext;
}

/** Matches the events that name the entity. Addresses are compared as such, in any spelling. */
function namesEntity({ kind, value }: Entity): Condition {
  const operator = kind === "address" && parseAddress(value) !== undefined ? "cidr" : "equals";
  const of = ENTITY_FIELDS[kind].map((field): Condition => ({
    kind: "test",
    field: `raw.${field}`,
    operator,
    value,
    ignoreCase: false,
  }));
  return of.length === 1 ? of[0]! : { kind: "any", of };
}

export async function seenPart({ store, entity, range, context }: EntityPartQuery) {
  const { kind, value } = entity;
  const query = { search: value, isWhole: true, kinds: [kind], fromMs: 0, toMs: range.toMs, limit: 1 };
  const { entities, isComplete } = await store.events.entities(query, context);
  const [found] = entities;
  return {
    first_seen: found ? formatTime(found.firstSeenMs) : null,
    last_seen: found ? formatTime(found.lastSeenMs) : null,
    events: found?.events ?? 0,
    complete: isComplete,
  };
}

export async function eventsPart({ store, entity, range, context }: EntityPartQuery) {
  const { fromMs, toMs, intervalMs } = range;
  const query = {
    condition: namesEntity(entity),
    fromMs,
    toMs,
    sort: [],
    limit: 0,
    aggs: [
      { name: "severities", aggregation: { kind: "terms", field: "severity", size: SEVERITIES.length, aggs: [] } },
      { name: "types", aggregation: { kind: "terms", field: "type", size: TYPES_MAX, aggs: [] } },
      { name: "times", aggregation: { kind: "histogram", field: "timestamp", interval: intervalMs, aggs: [] } },
    ] as const,
  };
  const { total, aggregations } = await store.events.search(query, context);
  const severities = countsOf(aggregations["severities"]);
  const types = aggregations["types"] as BucketsResult;
  const times = new Map(
    (aggregations["times"] as BucketsResult).buckets.map(({ key, count }) => [parseTime(String(key)), count]),
  );
  return {
    total,
    by_severity: perValue(SEVERITIES, (severity) => severities.get(severity) ?? 0),
    by_type: types.buckets.map(({ key, count }) => ({ type: String(key), events: count })),
    other_types: types.other_count ?? 0,
    over_time: timeseriesPoints(fromMs, toMs, intervalMs).map((at) => times.get(at) ?? 0),
  };
}

function countsOf(result: AggregationResult | undefined): Map<string, number> {
  return new Map((result as BucketsResult).buckets.map(({ key, count }) => [String(key), count]));
}

function perValue<Value extends string>(values: readonly Value[], countOf: (value: Value) => number) {
  return Object.fromEntries(values.map((value) => [value, countOf(value)])) as Record<Value, number>;
}

/** The entities in the newest events that name this one. */
export async function relatedPart({ store, entity, range, context }: EntityPartQuery) {
  const { fromMs, toMs } = range;
  const query = { condition: namesEntity(entity), fromMs, toMs, sort: [], limit: RELATED_EVENTS_MAX, aggs: [] };
  const { items, total } = await store.events.search(query, context);
  const found = new Map<string, EntitySummary>();
  for (const text of items) {
    const { raw, timestamp } = parseExact(text) as Event;
    const at = parseTime(timestamp)!;
    for (const { kind, value } of entitiesOf(raw)) {
      if (kind === entity.kind && value === entity.value) continue;
      const before = found.get(`${kind} ${value}`);
      found.set(`${kind} ${value}`, {
        kind,
        value,
        firstSeenMs: Math.min(at, before?.firstSeenMs ?? at),
        lastSeenMs: Math.max(at, before?.lastSeenMs ?? at),
        events: (before?.events ?? 0) + 1,
      });
    }
  }
  const entities = ENTITY_KINDS.flatMap((kind) =>
    [...found.values()]
      .filter((related) => related.kind === kind)
      .sort((a, b) => b.events - a.events || b.lastSeenMs - a.lastSeenMs || (a.value < b.value ? -1 : 1))
      .slice(0, RELATED_ENTITIES_MAX),
  );
  return {
    entities: entities.map(summaryView),
    events_read: items.length,
    complete: items.length === total && entities.length === found.size,
  };
}

export function summaryView({ kind, value, firstSeenMs, lastSeenMs, events }: EntitySummary) {
  return { kind, value, first_seen: formatTime(firstSeenMs), last_seen: formatTime(lastSeenMs), events };
}

/** The alerts whose events name the entity, and that were going on in the range. */
export async function alertsPart({ store, entity, range: { fromMs, toMs }, context }: EntityPartQuery) {
  const countBy = (field: string, size: number) => ({ kind: "terms", field, size, aggs: [] }) as const;
  const value = entityText(entity);
  const { total, items, aggregations } = await store.alerts.search(
    {
      condition: { kind: "test", field: "entities", operator: "equals", value, ignoreCase: true },
      time: "overlap",
      fromMs,
      toMs,
      sort: [],
      limit: ALERTS_MAX,
      aggs: [
        { name: "status", aggregation: countBy("status", STATUSES.length) },
        { name: "severity", aggregation: countBy("severity", SEVERITIES.length) },
      ],
    },
    context,
  );
  const byStatus = countsOf(aggregations["status"]);
  const bySeverity = countsOf(aggregations["severity"]);
  return {
    total,
    by_status: perValue(STATUSES, (status) => byStatus.get(status) ?? 0),
    by_severity: perValue(SEVERITIES, (severity) => bySeverity.get(severity) ?? 0),
    newest: items.map(alertView),
  };
}

/** Null for anything but an address. */
export async function trafficPart(
  { store, entity, range, context }: EntityPartQuery,
  hostnameOf: (address: string) => string | null,
) {
  if (entity.kind !== "address" || parseAddress(entity.value) === undefined) return null;
  const address = parseCidr(entity.value)!;
  const { fromMs, toMs, intervalMs } = range;
  const { flows } = store;
  const [to, from] = [
    { dst: address, fromMs, toMs },
    { src: address, fromMs, toMs },
  ];
  const [incoming, outgoing, sources, destinations, ports] = await Promise.all([
    flows.timeseries({ filter: to, intervalMs, by: "bytes", limit: 1 }, context),
    flows.timeseries({ filter: from, intervalMs, by: "bytes", limit: 1 }, context),
    flows.topTalkers({ filter: to, dimension: "src", by: "bytes", limit: PEERS_MAX }, context),
    flows.topTalkers({ filter: from, dimension: "dst", by: "bytes", limit: PEERS_MAX }, context),
    flows.topTalkers(
      { filter: { host: address, fromMs, toMs }, dimension: "port", by: "bytes", limit: PORTS_MAX },
      context,
    ),
  ]);
  const peerView = ({ key, ...sums }: Traffic) => ({ address: key, hostname: hostnameOf(key), ...sumsView(sums) });
  return {
    in: seriesView(incoming.series[0]),
    out: seriesView(outgoing.series[0]),
    peers_in: sources.map(peerView),
    peers_out: destinations.map(peerView),
    ports: ports.map(({ key, ...sums }) => ({ port: key, ...sumsView(sums) })),
  };
}

function sumsView({ bytes, packets, flowCount }: Omit<Traffic, "key">) {
  return { bytes, packets, flow_count: flowCount };
}

/** An empty range has no series. */
function seriesView(found: Series | undefined) {
  const { bytes = [], packets = [], flowCount = [] } = found ?? {};
  return { bytes, packets, flow_count: flowCount };
}
