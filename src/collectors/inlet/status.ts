import { REFUSAL_REASONS, type RefusalReason } from "../reading.ts";
import { sampleOf } from "./text.ts";

// What is told of lines and bodies that come in, and of those who send them.

export const LINE_COLLECTORS = ["syslog", "syslog_tls", "eve"] as const;
export type LineCollector = (typeof LINE_COLLECTORS)[number];

export const LINE_TRANSPORTS = ["udp", "tcp", "tls", "unix", "file"] as const;
export type LineTransport = (typeof LINE_TRANSPORTS)[number];

export type Refusals = Readonly<Record<RefusalReason, number>>;

/** What became of what came in. */
export interface CollectCounts {
  readonly lines: number;
  readonly events: number;
  readonly flows: number;
  /** Understood, and nothing to tell. */
  readonly nothing: number;
  readonly refused: Refusals;
}

export interface LastRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
  /** The beginning of what was refused. */
  readonly sample: string;
  readonly atMs: number;
}

export const SENDER_STATES = ["receiving", "refused", "waiting", "silent"] as const;
export type SenderState = (typeof SENDER_STATES)[number];

export interface SenderStatus extends CollectCounts {
  /** `others` stands for those that there was no room to remember. */
  readonly address: string;
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly state: SenderState;
  readonly summary: string;
  readonly connections: number;
  /** Lines that are here and not handed on yet. */
  readonly waiting: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly lastRefusal: LastRefusal | null;
}

export interface LineListenerStatus {
  readonly name: LineCollector;
  readonly transport: Exclude<LineTransport, "file">;
  /** The path of a Unix socket. */
  readonly address: string;
  readonly port: number | null;
  /** Datagrams, or messages out of streams. */
  readonly packets: number;
  readonly bytes: number;
  readonly receiveBufferBytes: number | null;
  readonly connections: number | null;
  /** Datagrams that the system dropped since they came faster than they were read; null where it does not say. */
  readonly systemDrops: number | null;
}

export const FILE_STATES = ["reading", "missing", "failing"] as const;

export interface FileStatus {
  readonly path: string;
  readonly state: (typeof FILE_STATES)[number];
  readonly summary: string;
  readonly offset: number;
  readonly size: number;
  /** Bytes that are in the file and not stored yet. */
  readonly lagBytes: number;
}

export interface InletStatus {
  readonly listeners: readonly LineListenerStatus[];
  readonly senders: readonly SenderStatus[];
  /** Over everyone, those that are forgotten included. */
  readonly total: CollectCounts;
  readonly waiting: number;
  readonly file: FileStatus | null;
}

export interface PostStatus extends CollectCounts {
  readonly name: string;
  readonly requests: number;
  readonly lastSeenMs: number | null;
  readonly lastRefusal: LastRefusal | null;
}

function noRefusals(): Record<RefusalReason, number> {
  return Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])) as Record<RefusalReason, number>;
}

/** What became of things, added up as they come. */
export class Tally implements CollectCounts {
  lines = 0;
  events = 0;
  flows = 0;
  nothing = 0;
  readonly refused = noRefusals();
  lastRefusal: LastRefusal | null = null;

  /** Of bytes that are refused alike within a millisecond the first are shown: a flood of them is only counted. */
  refuse(reason: RefusalReason, message: string, sample: Uint8Array | string, atMs: number): void {
    this.refused[reason]++;
    if (typeof sample === "string") this.lastRefusal = { reason, message, sample, atMs };
    else if (!this.#hasShown(reason, message, atMs))
      this.lastRefusal = { reason, message, sample: sampleOf(sample), atMs };
  }

  #hasShown(reason: RefusalReason, message: string, atMs: number): boolean {
    const last = this.lastRefusal;
    return last !== null && last.atMs === atMs && last.reason === reason && last.message === message;
  }

  add(other: CollectCounts): void {
    this.lines += other.lines;
    this.events += other.events;
    this.flows += other.flows;
    this.nothing += other.nothing;
    for (const reason of REFUSAL_REASONS) this.refused[reason] += other.refused[reason];
  }

  counts(): CollectCounts {
    const { lines, events, flows, nothing, refused } = this;
    return { lines, events, flows, nothing, refused: { ...refused } };
  }
}
