import type { AddressRange } from "../lib/ip.ts";
import type { TimeRange } from "./query.ts";

// Queries over flows and their results. Bytes and packets are 64-bit; their sums may be larger.

/** The time range applies to `timestamp`, the end of a row's window: `fromMs` inclusive, `toMs` exclusive. */
export interface FlowFilter extends TimeRange {
  readonly src?: AddressRange | undefined;
  readonly dst?: AddressRange | undefined;
  /** Address of either endpoint. */
  readonly host?: AddressRange | undefined;
  readonly exporter?: AddressRange | undefined;
  /** Port of either endpoint. */
  readonly port?: number | undefined;
  readonly protocol?: number | undefined;
  /** Address of either endpoint after translation; with `natPort`, of the same endpoint. */
  readonly nat?: AddressRange | undefined;
  readonly natPort?: number | undefined;
}

export const FLOW_SORTS = ["bytes", "packets", "timestamp"] as const;
/** Ties are ordered by timestamp and then by id, in the same direction. */
export interface FlowOrder {
  readonly sort: (typeof FLOW_SORTS)[number];
  readonly descending: boolean;
}

export interface Flow {
  readonly id: string;
  /** The window ends 60 seconds later; its end is the flow's timestamp. */
  readonly windowStartMs: number;
  readonly src: string;
  readonly dst: string;
  readonly srcPort: number;
  readonly dstPort: number;
  readonly protocol: number;
  readonly tcpFlags: number;
  readonly bytes: bigint;
  readonly packets: bigint;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly exporter: string;
  readonly version: number;
  /** Endpoints after translation by a gateway; null if not translated. A port is also null if unknown. */
  readonly natSrc: string | null;
  readonly natDst: string | null;
  readonly natSrcPort: number | null;
  readonly natDstPort: number | null;
}

export const MEASURES = ["bytes", "packets"] as const;
export type Measure = (typeof MEASURES)[number];

export const TALKER_DIMENSIONS = ["src", "dst", "pair", "port"] as const;
export type TalkerDimension = (typeof TALKER_DIMENSIONS)[number];

/** Totals of the rows with one key. */
export interface Traffic {
  readonly key: string;
  readonly bytes: bigint;
  readonly packets: bigint;
  readonly flowCount: number;
}

export interface TalkersQuery {
  readonly filter: FlowFilter;
  readonly dimension: TalkerDimension;
  /** Ranking measure, highest first; ties by key. */
  readonly by: Measure;
  readonly limit: number;
}

export const SPLITS = ["protocol", "src", "dst", "exporter", "port"] as const;
export type Split = (typeof SPLITS)[number];

export interface TimeseriesQuery {
  readonly filter: FlowFilter & { readonly fromMs: number; readonly toMs: number };
  /** Points lie at multiples of this interval since 1970. */
  readonly intervalMs: number;
  /**
   * Added to the time of each row before it is assigned to a point, default 0: the points of an earlier range are then those
   * of a later one, whatever the interval.
   */
  readonly shiftMs?: number | undefined;
  /** Without a split, all rows form one series. */
  readonly split?: Split | undefined;
  /** Measure that ranks the series. */
  readonly by: Measure;
  readonly limit: number;
}

export const TIMESERIES_POINTS_MAX = 1500;

/** The protocols whose ports name a service; the ports of others are something else, such as the type of an ICMP message. */
export const PROTOCOLS_WITH_PORTS = [6, 17, 33, 132, 136] as const;
/** Key of the traffic without a service port. */
export const NO_PORT_KEY = "none";

/** Key of the series that sums up everything outside the top series. */
export const OTHER_KEY = "other";
/** Key of the only series of a query without a split. */
export const ALL_KEY = "all";

export interface Timeseries {
  /** Start of each point in milliseconds. */
  readonly timestamps: readonly number[];
  /** The top series by total, highest first, then one series with the rest, if any. */
  readonly series: readonly Series[];
}

export interface Series {
  readonly key: string;
  /** One value per timestamp. */
  readonly bytes: readonly bigint[];
  readonly packets: readonly bigint[];
  readonly flowCount: readonly number[];
}

export function timeseriesPoints(fromMs: number, toMs: number, intervalMs: number): number[] {
  const first = Math.floor(fromMs / intervalMs) * intervalMs;
  const count = Math.max(0, Math.ceil((toMs - first) / intervalMs));
  return Array.from({ length: count }, (_, nth) => first + nth * intervalMs);
}
