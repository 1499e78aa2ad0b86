import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { parseAddress, parseCidr } from "../lib/ip.ts";
import { DAY_MS } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import {
  FLOW_SORTS,
  MEASURES,
  SPLITS,
  TALKER_DIMENSIONS,
  type Flow,
  type FlowFilter,
  type Timeseries,
  type Traffic,
} from "../model/flow-query.ts";
import { protocolName } from "../model/protocol.ts";
import { readRelativeTime, refuseBackwards } from "../model/time-bound.ts";
import type { QueryContext } from "../store/ports/query-context.ts";
import type { Store } from "../store/ports/store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { bare } from "./response.ts";
import { defaultInterval, intervalParameter, refuseTooManyPoints } from "./intervals.ts";
import { integerParameter, textParameter } from "./query-parameters.ts";
import {
  FLOW_EXAMPLE,
  flowListSchema,
  PROTOCOLS_EXAMPLE,
  protocolSchema,
  TALKERS_EXAMPLE,
  talkerSchema,
  TIMESERIES_EXAMPLE,
  timeseriesSchema,
} from "./flow-responses.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { markIncomplete } from "./incomplete-response.ts";

// Flow queries. Responses have no envelope; times are milliseconds since 1970.

const LIST_LIMIT_DEFAULT = 50;
const LIST_LIMIT_MAX = 1000;
const OFFSET_MAX = Number.MAX_SAFE_INTEGER;
const TALKERS_LIMIT_DEFAULT = 20;
const TALKERS_LIMIT_MAX = 1000;
const SERIES_DEFAULT = 10;
const SERIES_MAX = 50;
const LOOK_BACK_SECONDS_DEFAULT = 3600;
/** The maximum retention of flows; a longer window would return the same. */
const LOOK_BACK_SECONDS_MAX = 36_500 * 86_400;
const TIME_MS_MAX = 100_000_000 * DAY_MS;

export interface FlowEndpointOptions {
  readonly store: Pick<Store, "flows" | "missing">;
  /** The cached host name of an address. */
  readonly hostnameOf: (address: string) => string | null;
  readonly now: () => number;
}

/** A 64-bit integer, rounded to the nearest double. */
function readInt64(text: string): number | undefined {
  if (!/^-?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? Number(value) : undefined;
}

/** Any 64-bit integer is accepted as a time and clamped to the valid range. */
function readEpoch(text: string): number | undefined {
  const value = readRelativeTime(text) ?? readInt64(text);
  return value === undefined ? undefined : Math.max(-TIME_MS_MAX, Math.min(TIME_MS_MAX, value));
}

/** Any unsigned 64-bit integer is accepted. An offset past the last flow returns an empty page. */
function readOffset(text: string): number | undefined {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) >= 2n ** 64n) return undefined;
  return Math.min(Number(text), OFFSET_MAX);
}

function readLookBack(text: string): number | undefined {
  const seconds = readInt64(text);
  return seconds === undefined || seconds < 1 ? undefined : Math.min(seconds, LOOK_BACK_SECONDS_MAX);
}

const epoch = (description: string) =>
  textParameter(description, "must be an integer, in milliseconds since 1970, or relative to now: now-24h", readEpoch, {
    type: "integer",
    format: "int64",
  });
const network = (description: string) =>
  textParameter(description, "must be an IP address or a network such as 10.0.0.0/8", parseCidr, { type: "string" });

const rangeParameters = {
  from: epoch("`timestamp` at or after this, in milliseconds since 1970, or `now-24h`"),
  to: epoch("`timestamp` before this, in milliseconds since 1970, or `now`"),
};

const filterParameters = {
  src_ip: network("source address or network, such as `10.0.0.0/8`"),
  dst_ip: network("destination address or network"),
  host: network("source or destination address, or network"),
  port: integerParameter(0, 65_535, "source or destination port"),
  protocol: integerParameter(0, 255, "IANA protocol number"),
  exporter: textParameter(
    "address of the exporter",
    "must be an IP address",
    (text) => (parseAddress(text) === undefined ? undefined : parseCidr(text)),
    { type: "string" },
  ),
  nat_ip: network("source or destination address after NAT, or network"),
  nat_port: integerParameter(
    0,
    65_535,
    "source or destination port after NAT; with `nat_ip`, both must match the same endpoint",
  ),
};

const lookBackParameters = {
  window_secs: textParameter(
    `seconds before \`to\`, or before now; default ${LOOK_BACK_SECONDS_DEFAULT}; cannot be combined with \`from\``,
    "must be an integer of at least 1, in seconds",
    readLookBack,
    { type: "integer", format: "int64", minimum: 1 },
  ),
  ...rangeParameters,
  ...filterParameters,
};

interface LookBack {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly window_secs?: number | undefined;
}

function refuseTwoStarts({ from, window_secs }: LookBack, context: z.RefinementCtx): void {
  if (from === undefined || window_secs === undefined) return;
  context.addIssue({
    code: "custom",
    path: ["window_secs"],
    message: "cannot be combined with from; send only one of them",
  });
}

const listQuery = z
  .strictObject({
    ...rangeParameters,
    ...filterParameters,
    sort: z.enum(FLOW_SORTS).default("timestamp"),
    order: z.enum(["asc", "desc"]).default("desc"),
    offset: textParameter("flows to skip, default 0", "must be an integer of at least 0", readOffset, {
      type: "integer",
      format: "int64",
      minimum: 0,
    }),
    limit: integerParameter(1, LIST_LIMIT_MAX, `maximum number of flows, default ${LIST_LIMIT_DEFAULT}`),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS);

const talkersQuery = z
  .strictObject({
    ...lookBackParameters,
    by: z.enum(MEASURES).default("bytes").describe("the measure to rank by"),
    dim: z.enum(TALKER_DIMENSIONS).default("src").describe("what to rank; `port` is the service port"),
    limit: integerParameter(1, TALKERS_LIMIT_MAX, `maximum number of rows, default ${TALKERS_LIMIT_DEFAULT}`),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoStarts, BESIDE_OTHERS);

const protocolsQuery = z
  .strictObject(lookBackParameters)
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoStarts, BESIDE_OTHERS);

const timeseriesQuery = z
  .strictObject({
    ...lookBackParameters,
    interval: intervalParameter,
    split: z
      .enum(SPLITS)
      .optional()
      .describe("the field with one series per value; default: one series for all traffic"),
    compare: z
      .enum(["previous"])
      .optional()
      .describe("`previous` adds the traffic of the range of the same length directly before, on the same timestamps"),
    by: z.enum(MEASURES).default("bytes").describe("the measure to rank series by"),
    limit: integerParameter(
      1,
      SERIES_MAX,
      `maximum number of series, default ${SERIES_DEFAULT}; the remaining ones are summed up as \`other\``,
    ),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoStarts, BESIDE_OTHERS);

type FlowFilterParameters = Partial<Record<"src_ip" | "dst_ip" | "host" | "exporter" | "nat_ip", FlowFilter["src"]>> &
  Partial<Record<"port" | "protocol" | "nat_port", number | undefined>>;

function filterOf({
  src_ip,
  dst_ip,
  host,
  exporter,
  port,
  protocol,
  nat_ip,
  nat_port,
}: FlowFilterParameters): FlowFilter {
  return { src: src_ip, dst: dst_ip, host, exporter, port, protocol, nat: nat_ip, natPort: nat_port };
}

/** Without `to` the range has no end, so that windows flushed early or by a fast clock are included. */
function rangeOf({ from, to, window_secs = LOOK_BACK_SECONDS_DEFAULT }: LookBack, now: number) {
  return { fromMs: from ?? (to ?? now) - window_secs * 1000, toMs: to };
}

export function flowEndpoints({ store, hostnameOf, now }: FlowEndpointOptions): Endpoint[] {
  const { flows } = store;
  const respond = (value: unknown, filter: FlowFilter) => markIncomplete(bare(value), store, "flows", filter);
  return [
    endpoint({
      method: "GET",
      path: "/api/v1/flows",
      operationId: "listFlows",
      tag: "Flows",
      summary: "List flows",
      description:
        "A flow is the traffic that one exporter saw between two endpoints within one minute. `timestamp` is the end of that minute. " +
        "Ties in the sort order are broken by `timestamp` and then `id`. The `nat_` fields hold the endpoints after NAT, if " +
        "the exporter reports them; `nat_ip` with `nat_port` finds the host behind a public address and port.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: listQuery,
      responses: {
        200: {
          description: "one page of flows and the total",
          bare: flowListSchema,
          example: { total: 1, offset: 0, limit: LIST_LIMIT_DEFAULT, flows: [FLOW_EXAMPLE] },
        },
      },
      handle: async ({ query, key, request }) => {
        const { from, to, sort, order, offset = 0, limit = LIST_LIMIT_DEFAULT, ...filters } = query;
        const filter = { ...filterOf(filters), fromMs: from, toMs: to };
        const found = await queryFlows(request, key, (caller) =>
          flows.list(filter, { sort, descending: order === "desc" }, offset, limit, caller),
        );
        const page = found.flows.map((flow) => flowView(flow, hostnameOf));
        return respond({ total: found.total, offset, limit, flows: page }, filter);
      },
    }),
    endpoint({
      method: "GET",
      path: "/api/v1/flows/top-talkers",
      operationId: "listTopTalkers",
      tag: "Flows",
      summary: "List top talkers",
      description:
        "The key is an address, `<source> → <destination>` with `dim=pair`, or the service port with `dim=port`: the lower " +
        "port of a flow, and `none` for a protocol without ports. Ties are ordered by key.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: talkersQuery,
      responses: {
        200: { description: "the top rows, highest first", bare: z.array(talkerSchema), example: TALKERS_EXAMPLE },
      },
      handle: async ({ query, key, request }) => {
        const { by, dim, limit = TALKERS_LIMIT_DEFAULT, from, to, window_secs, ...filters } = query;
        const filter = { ...filterOf(filters), ...rangeOf({ from, to, window_secs }, now()) };
        const rows = await queryFlows(request, key, (caller) =>
          flows.topTalkers({ filter, dimension: dim, by, limit }, caller),
        );
        return respond(
          rows.map(({ key, ...sums }) => ({ key, ...sumsOf(sums) })),
          filter,
        );
      },
    }),
    endpoint({
      method: "GET",
      path: "/api/v1/flows/protocols",
      operationId: "listFlowProtocols",
      tag: "Flows",
      summary: "List protocols by traffic",
      description: "Protocols have their IANA names; one without a name is listed by its number.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: protocolsQuery,
      responses: {
        200: { description: "protocols, most bytes first", bare: z.array(protocolSchema), example: PROTOCOLS_EXAMPLE },
      },
      handle: async ({ query, key, request }) => {
        const { from, to, window_secs, ...filters } = query;
        const filter = { ...filterOf(filters), ...rangeOf({ from, to, window_secs }, now()) };
        const rows = await queryFlows(request, key, (caller) => flows.protocols(filter, caller));
        return respond(
          rows.map(({ key, ...sums }) => ({ protocol: key, ...sumsOf(sums) })),
          filter,
        );
      },
    }),
    endpoint({
      method: "GET",
      path: "/api/v1/flows/timeseries",
      operationId: "flowTimeseries",
      tag: "Flows",
      summary: "Get traffic over time",
      description:
        "Points are aligned to multiples of the interval. A point covers the flows whose `timestamp` is in " +
        "[point, point + interval). Points without traffic are included as zeros. With `compare=previous`, `previous` has " +
        "the sums of all matching traffic in the range of the same length directly before, each flow at the point that " +
        "is this length later.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: timeseriesQuery,
      responses: {
        200: {
          description: "the timestamps, and the sums of each series",
          bare: timeseriesSchema,
          example: TIMESERIES_EXAMPLE,
        },
      },
      handle: async ({ query, key, request }) => {
        const { interval, split, compare, by, limit = SERIES_DEFAULT, from, to, window_secs, ...filters } = query;
        const askedAt = now();
        const { fromMs, ...range } = rangeOf({ from, to, window_secs }, askedAt);
        // The points need an end: that of the current minute.
        const toMs = range.toMs ?? Math.max(askedAt, fromMs) + FLOW_WINDOW_MS;
        const intervalMs = interval ?? defaultInterval(fromMs, toMs);
        refuseTooManyPoints(fromMs, toMs, intervalMs);
        const filter = { ...filterOf(filters), fromMs, toMs };
        const found = await queryFlows(request, key, (caller) =>
          flows.timeseries({ filter, intervalMs, split, by, limit }, caller),
        );
        const earlier = { ...filter, fromMs: Math.max(2 * fromMs - toMs, -TIME_MS_MAX), toMs: fromMs };
        const previous =
          compare &&
          (await queryFlows(request, key, (caller) =>
            flows.timeseries({ filter: earlier, intervalMs, shiftMs: toMs - fromMs, by, limit: 1 }, caller),
          ));
        const response = {
          from: fromMs,
          to: toMs,
          interval_secs: intervalMs / 1000,
          split: split ?? null,
          by,
          timestamps: found.timestamps,
          series: found.series.map(({ key, bytes, packets, flowCount }) => ({
            key,
            bytes,
            packets,
            flow_count: flowCount,
          })),
          ...(previous && { previous: previousView(earlier, previous) }),
        };
        return respond(response, compare ? { ...filter, fromMs: earlier.fromMs } : filter);
      },
    }),
  ];
}

/** Runs a query that is cancelled when the client disconnects. */
function queryFlows<Result>(
  request: FastifyRequest,
  key: { readonly id: string },
  query: (caller: QueryContext) => Promise<Result>,
): Promise<Result> {
  return abortOnDisconnect(request.raw.socket, (signal) => query({ client: key.id, signal }));
}

function sumsOf({ bytes, packets, flowCount }: Omit<Traffic, "key">) {
  return { bytes, packets, flow_count: flowCount };
}

/** An empty range has no series. */
function previousView({ fromMs, toMs }: { fromMs: number; toMs: number }, { series: [all] }: Timeseries) {
  const { bytes = [], packets = [], flowCount = [] } = all ?? {};
  return { from: fromMs, to: toMs, bytes, packets, flow_count: flowCount };
}

function flowView(flow: Flow, hostnameOf: FlowEndpointOptions["hostnameOf"]) {
  const windowEnd = flow.windowStartMs + FLOW_WINDOW_MS;
  return {
    id: flow.id,
    timestamp: windowEnd,
    window_start: flow.windowStartMs,
    window_end: windowEnd,
    src_ip: flow.src,
    dst_ip: flow.dst,
    src_hostname: hostnameOf(flow.src),
    dst_hostname: hostnameOf(flow.dst),
    src_port: flow.srcPort,
    dst_port: flow.dstPort,
    protocol: flow.protocol,
    protocol_name: protocolName(flow.protocol),
    bytes: flow.bytes,
    packets: flow.packets,
    tcp_flags: flow.tcpFlags,
    first_seen_ms: flow.firstSeenMs,
    last_seen_ms: flow.lastSeenMs,
    exporter_ip: flow.exporter,
    version: flow.version,
    nat_src_ip: flow.natSrc,
    nat_dst_ip: flow.natDst,
    nat_src_port: flow.natSrcPort,
    nat_dst_port: flow.natDstPort,
  };
}
