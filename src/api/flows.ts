import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { parseAddress, parseCidr } from "../lib/ip.ts";
import { DAY_MS } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import {
  FLOW_SORTS,
  MEASURES,
  SPLITS,
  TALKER_DIMENSIONS,
  TIMESERIES_POINTS_MAX,
  type Flow,
  type FlowFilter,
  type Traffic,
} from "../model/flow-question.ts";
import { protocolName } from "../model/protocol.ts";
import { refuseBackwards } from "../model/query.ts";
import type { Asking, Store } from "../store/store.ts";
import { bare, endpoint, integerParameter, type Endpoint } from "./endpoint.ts";
import {
  FLOW_EXAMPLE,
  flowListSchema,
  PROTOCOLS_EXAMPLE,
  protocolSchema,
  TALKERS_EXAMPLE,
  talkerSchema,
  TIMESERIES_EXAMPLE,
  timeseriesSchema,
} from "./flow-answers.ts";
import { untilHangUp } from "./hang-up.ts";
import { marked } from "./incomplete.ts";
import { invalid } from "./problems.ts";

// Who talked to whom. Answers are bare; times are milliseconds since 1970.

const LIST_LIMIT_DEFAULT = 50;
const LIST_LIMIT_MAX = 1000;
const OFFSET_MAX = Number.MAX_SAFE_INTEGER;
const TALKERS_LIMIT_DEFAULT = 20;
const TALKERS_LIMIT_MAX = 1000;
const SERIES_DEFAULT = 10;
const SERIES_MAX = 50;
const LOOK_BACK_SECONDS_DEFAULT = 3600;
/** As long as flows can be kept at all; whoever looks back further sees everything, too. */
const LOOK_BACK_SECONDS_MAX = 36_500 * 86_400;
/** Intervals that are taken when none is asked for: the first that does not give too many points to look at. */
const INTERVALS = ["1m", "5m", "15m", "1h", "6h", "1d"] as const;
const POINTS_DEFAULT_MAX = 200;
const TIME_MS_MAX = 100_000_000 * DAY_MS;

export interface FlowEndpointOptions {
  readonly store: Pick<Store, "flows" | "missing">;
  /** What is known of the address now. */
  readonly hostnameOf: (address: string) => string | null;
  readonly now: () => number;
}

function refined<Value>(
  about: string,
  message: string,
  read: (text: string) => Value | undefined,
  meta: Record<string, string | number>,
) {
  return z
    .string()
    .transform((text, context) => {
      const value = read(text);
      if (value !== undefined) return value;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .optional()
    .describe(about)
    .meta(meta);
}

/** A 64-bit number, as near as a number comes to it. */
function readInt64(text: string): number | undefined {
  if (!/^-?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? Number(value) : undefined;
}

/** Any 64-bit number is a time; what lies beyond the end of the calendar is its end. */
function readEpoch(text: string): number | undefined {
  const value = readInt64(text);
  return value === undefined ? undefined : Math.max(-TIME_MS_MAX, Math.min(TIME_MS_MAX, value));
}

/** Any offset that a 64-bit counter holds; one beyond the last flow gives an empty page, however far beyond. */
function readOffset(text: string): number | undefined {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) >= 2n ** 64n) return undefined;
  return Math.min(Number(text), OFFSET_MAX);
}

function readLookBack(text: string): number | undefined {
  const seconds = readInt64(text);
  return seconds === undefined || seconds < 1 ? undefined : Math.min(seconds, LOOK_BACK_SECONDS_MAX);
}

const epoch = (about: string) =>
  refined(about, "must be a whole number of milliseconds since 1970", readEpoch, { type: "integer", format: "int64" });
const network = (about: string) =>
  refined(about, "must be an IP address, or a network such as 10.0.0.0/8", parseCidr, { type: "string" });

const rangeParameters = {
  from: epoch("`timestamp` at or after this, in milliseconds since 1970"),
  to: epoch("`timestamp` before this, in milliseconds since 1970"),
};

const filterParameters = {
  src_ip: network("source address, or a network: `10.0.0.0/8`"),
  dst_ip: network("destination address, or a network"),
  port: integerParameter(0, 65_535, "source or destination port"),
  protocol: integerParameter(0, 255, "IANA protocol number"),
  exporter: refined(
    "address of the exporter",
    "must be an IP address",
    (text) => (parseAddress(text) === undefined ? undefined : parseCidr(text)),
    { type: "string" },
  ),
  nat_ip: network("source or destination address after NAT, or a network"),
  nat_port: integerParameter(
    0,
    65_535,
    "source or destination port after NAT; with `nat_ip`, both must match the same end",
  ),
};

const lookBackParameters = {
  window_secs: refined(
    `seconds to look back, from now or from \`to\`; default ${LOOK_BACK_SECONDS_DEFAULT}; not together with \`from\``,
    "must be a whole number of seconds, at least 1",
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

function refuseTwoBeginnings({ from, window_secs }: LookBack, context: z.RefinementCtx): void {
  if (from === undefined || window_secs === undefined) return;
  context.addIssue({ code: "custom", path: ["window_secs"], message: "cannot stand beside from: give one of the two" });
}

const listQuery = z
  .strictObject({
    ...rangeParameters,
    ...filterParameters,
    sort: z.enum(FLOW_SORTS).default("timestamp"),
    order: z.enum(["asc", "desc"]).default("desc"),
    offset: refined("flows to pass over, default 0", "must be a whole number, at least 0", readOffset, {
      type: "integer",
      format: "int64",
      minimum: 0,
    }),
    limit: integerParameter(1, LIST_LIMIT_MAX, `flows to give, default ${LIST_LIMIT_DEFAULT}`),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS);

const talkersQuery = z
  .strictObject({
    ...lookBackParameters,
    by: z.enum(MEASURES).default("bytes").describe("what ranks the rows"),
    dim: z.enum(TALKER_DIMENSIONS).default("src"),
    limit: integerParameter(1, TALKERS_LIMIT_MAX, `rows at most, default ${TALKERS_LIMIT_DEFAULT}`),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoBeginnings, BESIDE_OTHERS);

const protocolsQuery = z
  .strictObject(lookBackParameters)
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoBeginnings, BESIDE_OTHERS);

const timeseriesQuery = z
  .strictObject({
    ...lookBackParameters,
    interval: refined(
      `length of a point, in whole minutes: \`1m\`, \`1h\`, \`1d\`; default: the first of ${INTERVALS.join(", ")} that gives at most ${POINTS_DEFAULT_MAX} points`,
      "must be a duration of whole minutes, such as 5m, 1h or 1d",
      readInterval,
      { type: "string" },
    ),
    split: z.enum(SPLITS).optional().describe("a series for each of these; without it, one for all"),
    by: z.enum(MEASURES).default("bytes").describe("which series are the top ones"),
    limit: integerParameter(1, SERIES_MAX, `top series, default ${SERIES_DEFAULT}; the rest is the series \`other\``),
  })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .superRefine(refuseTwoBeginnings, BESIDE_OTHERS);

function readInterval(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms !== undefined && ms % FLOW_WINDOW_MS === 0 ? ms : undefined;
}

type Filters = Partial<Record<"src_ip" | "dst_ip" | "exporter" | "nat_ip", FlowFilter["src"]>> &
  Partial<Record<"port" | "protocol" | "nat_port", number | undefined>>;

function filterOf({ src_ip, dst_ip, exporter, port, protocol, nat_ip, nat_port }: Filters): FlowFilter {
  return { src: src_ip, dst: dst_ip, exporter, port, protocol, nat: nat_ip, natPort: nat_port };
}

/** Without `to` there is no end: a window that was written early, or by a clock that is ahead, is not hidden. */
function rangeOf({ from, to, window_secs = LOOK_BACK_SECONDS_DEFAULT }: LookBack, now: number) {
  return { fromMs: from ?? (to ?? now) - window_secs * 1000, toMs: to };
}

export function flowEndpoints({ store, hostnameOf, now }: FlowEndpointOptions): Endpoint[] {
  const { flows } = store;
  const answered = (value: unknown, filter: FlowFilter) => marked(bare(value), store, "flows", filter);
  return [
    endpoint({
      method: "GET",
      path: "/api/v1/flows",
      operationId: "listFlows",
      tag: "Flows",
      summary: "List flows",
      about:
        "A flow is what one exporter saw between two ends within one minute. `timestamp` is the end of that minute. " +
        "What is equal in the order goes by `timestamp` and then by `id`. The `nat_` fields hold the ends after NAT, as " +
        "far as the exporter reports them; `nat_ip` with `nat_port` finds who was behind a public address and port.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: listQuery,
      answers: {
        200: {
          about: "a page of flows and how many there are in all",
          bare: flowListSchema,
          example: { total: 1, offset: 0, limit: LIST_LIMIT_DEFAULT, flows: [FLOW_EXAMPLE] },
        },
      },
      handle: async ({ query, key, request }) => {
        const { from, to, sort, order, offset = 0, limit = LIST_LIMIT_DEFAULT, ...filters } = query;
        const filter = { ...filterOf(filters), fromMs: from, toMs: to };
        const found = await asked(request, key, (asking) =>
          flows.list(filter, { sort, descending: order === "desc" }, offset, limit, asking),
        );
        const page = found.flows.map((flow) => toAnswer(flow, hostnameOf));
        return answered({ total: found.total, offset, limit, flows: page }, filter);
      },
    }),
    endpoint({
      method: "GET",
      path: "/api/v1/flows/top-talkers",
      operationId: "listTopTalkers",
      tag: "Flows",
      summary: "Who talks most",
      about: "The key is an address, or `<source> → <destination>` with `dim=pair`. Equal rows are ordered by key.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: talkersQuery,
      answers: { 200: { about: "the top rows, highest first", bare: z.array(talkerSchema), example: TALKERS_EXAMPLE } },
      handle: async ({ query, key, request }) => {
        const { by, dim, limit = TALKERS_LIMIT_DEFAULT, from, to, window_secs, ...filters } = query;
        const filter = { ...filterOf(filters), ...rangeOf({ from, to, window_secs }, now()) };
        const rows = await asked(request, key, (asking) =>
          flows.topTalkers({ filter, dimension: dim, by, limit }, asking),
        );
        return answered(
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
      summary: "What is spoken",
      about: "Protocols have the names of IANA's table; one without a name is named by its number.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: protocolsQuery,
      answers: {
        200: { about: "protocols, most bytes first", bare: z.array(protocolSchema), example: PROTOCOLS_EXAMPLE },
      },
      handle: async ({ query, key, request }) => {
        const { from, to, window_secs, ...filters } = query;
        const filter = { ...filterOf(filters), ...rangeOf({ from, to, window_secs }, now()) };
        const rows = await asked(request, key, (asking) => flows.protocols(filter, asking));
        return answered(
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
      summary: "Traffic over time",
      about:
        "Points lie at whole multiples of the interval; the flows of a point are those whose `timestamp` is in " +
        "[point, point + interval). Points without traffic are there, with zeros.",
      scopes: ["events:read"],
      headers: { 200: ["X-Tocsin-Incomplete"] },
      query: timeseriesQuery,
      answers: {
        200: {
          about: "one list of points, and sums for each of them",
          bare: timeseriesSchema,
          example: TIMESERIES_EXAMPLE,
        },
      },
      handle: async ({ query, key, request }) => {
        const { interval, split, by, limit = SERIES_DEFAULT, from, to, window_secs, ...filters } = query;
        const askedAt = now();
        const { fromMs, ...range } = rangeOf({ from, to, window_secs }, askedAt);
        // Points need an end: that of the minute that is going on.
        const toMs = range.toMs ?? Math.max(askedAt, fromMs) + FLOW_WINDOW_MS;
        const intervalMs = interval ?? defaultInterval(fromMs, toMs);
        if ((toMs - fromMs) / intervalMs > TIMESERIES_POINTS_MAX) {
          const message = `gives more than ${TIMESERIES_POINTS_MAX} points: take a longer one, or a shorter range`;
          throw invalid([{ field: "interval", message }]);
        }
        const filter = { ...filterOf(filters), fromMs, toMs };
        const found = await asked(request, key, (asking) =>
          flows.timeseries({ filter, intervalMs, split, by, limit }, asking),
        );
        const answer = {
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
        };
        return answered(answer, filter);
      },
    }),
  ];
}

/** Asks for as long as the client is there. */
function asked<Answer>(
  request: FastifyRequest,
  key: { readonly id: string },
  ask: (asking: Asking) => Promise<Answer>,
): Promise<Answer> {
  return untilHangUp(request.raw.socket, (signal) => ask({ asker: key.id, signal }));
}

function defaultInterval(fromMs: number, toMs: number): number {
  const lengths = INTERVALS.map((text) => parseDuration(text)!);
  const fitting = lengths.find((ms) => (toMs - fromMs) / ms <= POINTS_DEFAULT_MAX);
  if (fitting !== undefined) return fitting;
  // Very long ranges get whole days, as many as it takes.
  const days = Math.ceil((toMs - fromMs) / DAY_MS / POINTS_DEFAULT_MAX);
  return days * DAY_MS;
}

function sumsOf({ bytes, packets, flowCount }: Omit<Traffic, "key">) {
  return { bytes, packets, flow_count: flowCount };
}

function toAnswer(flow: Flow, hostnameOf: FlowEndpointOptions["hostnameOf"]) {
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
