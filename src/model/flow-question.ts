import type { AddressRange } from "../lib/ip.ts";
import type { TimeRange } from "./query.ts";

// What can be asked of flows, and what the answers are made of. Bytes and packets are 64-bit and their sums may be more.

/** Of `timestamp`, which is the end of a row's window: `fromMs` inclusive, `toMs` exclusive. */
export interface FlowFilter extends TimeRange {
  readonly src?: AddressRange | undefined;
  readonly dst?: AddressRange | undefined;
  readonly exporter?: AddressRange | undefined;
  /** Either end's. */
  readonly port?: number | undefined;
  readonly protocol?: number | undefined;
  /** Either end's after translation; with `natPort`, that of the same end. */
  readonly nat?: AddressRange | undefined;
  readonly natPort?: number | undefined;
}

export const FLOW_SORTS = ["bytes", "packets", "timestamp"] as const;
/** What is equal goes by timestamp and then by id, in the same direction. */
export interface FlowOrder {
  readonly sort: (typeof FLOW_SORTS)[number];
  readonly descending: boolean;
}

export interface Flow {
  readonly id: string;
  /** The window's end is 60 seconds later, and is the flow's timestamp. */
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
  /** Ends on the far side of a gateway that translates; null where an end stays as it is, a port also where it is not told. */
  readonly natSrc: string | null;
  readonly natDst: string | null;
  readonly natSrcPort: number | null;
  readonly natDstPort: number | null;
}

export const MEASURES = ["bytes", "packets"] as const;
export type Measure = (typeof MEASURES)[number];

export const TALKER_DIMENSIONS = ["src", "dst", "pair"] as const;
export type TalkerDimension = (typeof TALKER_DIMENSIONS)[number];

/** What the rows of one key come to. */
export interface Traffic {
  readonly key: string;
  readonly bytes: bigint;
  readonly packets: bigint;
  readonly flowCount: number;
}

export interface TalkersQuestion {
  readonly filter: FlowFilter;
  readonly dimension: TalkerDimension;
  /** Ranks, highest first; ties by key. */
  readonly by: Measure;
  readonly limit: number;
}

export const SPLITS = ["protocol", "src", "dst", "exporter"] as const;
export type Split = (typeof SPLITS)[number];

export interface TimeseriesQuestion {
  readonly filter: FlowFilter & { readonly fromMs: number; readonly toMs: number };
  /** Points lie at whole multiples of it since 1970. */
  readonly intervalMs: number;
  /** Without it all rows are one series. */
  readonly split?: Split | undefined;
  /** Which series are the top ones. */
  readonly by: Measure;
  readonly limit: number;
}

export const TIMESERIES_POINTS_MAX = 1500;

/** The key of the series that holds whatever is not in the top ones. */
export const OTHER_KEY = "other";
/** The key of the one series of a question without a split. */
export const ALL_KEY = "all";

export interface Timeseries {
  /** Where each point begins, in milliseconds. */
  readonly timestamps: readonly number[];
  /** The top ones by their sums, highest first, then the rest of them as one where there is a rest. */
  readonly series: readonly Series[];
}

export interface Series {
  readonly key: string;
  /** One for each timestamp. */
  readonly bytes: readonly bigint[];
  readonly packets: readonly bigint[];
  readonly flowCount: readonly number[];
}

export function timeseriesPoints(fromMs: number, toMs: number, intervalMs: number): number[] {
  const first = Math.floor(fromMs / intervalMs) * intervalMs;
  const count = Math.max(0, Math.ceil((toMs - first) / intervalMs));
  return Array.from({ length: count }, (_, nth) => first + nth * intervalMs);
}
