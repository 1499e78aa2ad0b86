import { MinuteCounts, type RateStatus } from "../../lib/minute-counts.ts";
import {
  REFUSAL_REASONS,
  UNPARSED_TYPE,
  type ParsedEvent,
  type Reading,
  type RefusalReason,
} from "../formats/reading.ts";
import { sampleOf, startOf } from "./line-text.ts";
import { UnparsedSamples, type UnparsedSample } from "./unparsed-samples.ts";

// Status and counters of the line receiver, its senders and the post collector.

export const LINE_COLLECTORS = ["syslog", "syslog_tls", "eve"] as const;
export type LineCollector = (typeof LINE_COLLECTORS)[number];

export const LINE_TRANSPORTS = ["udp", "tcp", "tls", "unix", "file"] as const;
export type LineTransport = (typeof LINE_TRANSPORTS)[number];

export type Refusals = Readonly<Record<RefusalReason, number>>;

/** Input and its outcomes. */
export interface CollectCounts {
  readonly lines: number;
  readonly events: number;
  readonly flows: number;
  /** Lines that were understood but contain nothing new. */
  readonly nothing: number;
  /** Lines that no format understood, whether they are kept or not. */
  readonly unparsed: number;
  /** Lines of which only fields with common names were read. */
  readonly generic: number;
  readonly refused: Refusals;
}

/** How fast input arrives, and the last of it. */
export interface InputStatus {
  /** Of lines or items. */
  readonly rate: RateStatus;
  readonly lastLine: LastLine | null;
  readonly unparsedSamples: readonly UnparsedSample[];
}

export interface LastRefusal {
  readonly reason: RefusalReason;
  readonly message: string;
  /** Start of the refused input. */
  readonly sample: string;
  readonly atMs: number;
}

export const LINE_OUTCOMES = ["events", "flows", "nothing", "refused"] as const;
export type LineOutcome = (typeof LINE_OUTCOMES)[number];

/** The last input, and how it was understood. */
export interface LastLine {
  /** Its start, fit for display. */
  readonly text: string;
  readonly atMs: number;
  readonly outcome: LineOutcome;
  /** The name of the format that understood it; null if none did. */
  readonly format: string | null;
  /** The type of its first event; null if it has none. */
  readonly type: string | null;
  /** Why it was refused; null if it was not. */
  readonly message: string | null;
}

export const SENDER_STATES = ["receiving", "refused", "waiting", "silent"] as const;
export type SenderState = (typeof SENDER_STATES)[number];

export interface SenderStatus extends CollectCounts, InputStatus {
  /** `others` stands for all senders past the limit. */
  readonly address: string;
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly state: SenderState;
  readonly summary: string;
  readonly connections: number;
  /** Lines that are queued. */
  readonly waiting: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly lastRefusal: LastRefusal | null;
}

export interface LineListenerStatus {
  readonly name: LineCollector;
  readonly transport: Exclude<LineTransport, "file">;
  /** For a Unix socket, its path. */
  readonly address: string;
  readonly port: number | null;
  /** Datagrams, or messages from streams. */
  readonly packets: number;
  readonly bytes: number;
  readonly receiveBufferBytes: number | null;
  readonly connections: number | null;
  /** Datagrams that the kernel dropped because they arrived faster than they were read; null if it does not report them. */
  readonly systemDrops: number | null;
}

export const FILE_STATES = ["reading", "missing", "failing"] as const;

export interface FileStatus {
  readonly path: string;
  readonly state: (typeof FILE_STATES)[number];
  readonly summary: string;
  readonly offset: number;
  readonly size: number;
  /** Bytes in the file that are not stored yet. */
  readonly lagBytes: number;
}

export interface LineReceiverStatus {
  readonly listeners: readonly LineListenerStatus[];
  readonly senders: readonly SenderStatus[];
  /** Totals of all senders, evicted ones included. */
  readonly total: CollectCounts;
  readonly queued: number;
  readonly file: FileStatus | null;
  /** Lines that each format has read, by its name. */
  readonly formats: Readonly<Record<string, number>>;
}

export interface PostStatus extends CollectCounts, InputStatus {
  readonly name: string;
  readonly requests: number;
  readonly lastSeenMs: number | null;
  readonly lastRefusal: LastRefusal | null;
}

function noRefusals(): Record<RefusalReason, number> {
  return Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])) as Record<RefusalReason, number>;
}

/** Running counters of input and its outcomes. */
export class CollectTally implements CollectCounts {
  lines = 0;
  events = 0;
  flows = 0;
  nothing = 0;
  unparsed = 0;
  generic = 0;
  readonly refused = noRefusals();
  lastRefusal: LastRefusal | null = null;
  /** Without the refused input. */
  #lastUnderstood: Omit<LastLine, "message"> | null = null;
  readonly #rate = new MinuteCounts();
  readonly #unparsed = new UnparsedSamples();

  countLine(atMs: number): void {
    this.lines++;
    this.#rate.add(atMs);
  }

  /** Notes a line that was read. `format` names the only format of the collector, if it has one. */
  noteReading(text: string, reading: Exclude<Reading, { kind: "refused" }>, format: string | null, atMs: number): void {
    const type = reading.kind === "events" ? reading.events[0]!.type : null;
    const isUnparsed = type === UNPARSED_TYPE;
    this.#lastUnderstood = {
      text: startOf(text),
      atMs,
      outcome: reading.kind,
      format: isUnparsed ? null : (reading.format ?? format),
      type,
    };
  }

  /** Notes a line that no format understood. */
  noteUnparsed({ raw }: ParsedEvent, atMs: number): void {
    this.unparsed++;
    this.#unparsed.add(raw, atMs);
  }

  inputStatus(nowMs: number): InputStatus {
    return { rate: this.#rate.status(nowMs), lastLine: this.#lastLine(), unparsedSamples: this.#unparsed.list() };
  }

  #lastLine(): LastLine | null {
    const [refusal, understood] = [this.lastRefusal, this.#lastUnderstood];
    if (refusal && refusal.atMs >= (understood?.atMs ?? 0)) {
      const { sample, atMs, message } = refusal;
      return { text: sample, atMs, outcome: "refused", format: null, type: null, message };
    }
    return understood && { ...understood, text: sampleOf(understood.text), message: null };
  }

  /** Counts a refusal. Of identical refusals within one millisecond only the first provides the sample, so a flood is cheap. */
  refuse(reason: RefusalReason, message: string, sample: Uint8Array | string, atMs: number): void {
    this.refused[reason]++;
    if (typeof sample === "string") this.lastRefusal = { reason, message, sample, atMs };
    else if (!this.#isShown(reason, message, atMs))
      this.lastRefusal = { reason, message, sample: sampleOf(sample), atMs };
  }

  #isShown(reason: RefusalReason, message: string, atMs: number): boolean {
    const last = this.lastRefusal;
    return last !== null && last.atMs === atMs && last.reason === reason && last.message === message;
  }

  add(other: CollectCounts): void {
    this.lines += other.lines;
    this.events += other.events;
    this.flows += other.flows;
    this.nothing += other.nothing;
    this.unparsed += other.unparsed;
    this.generic += other.generic;
    for (const reason of REFUSAL_REASONS) this.refused[reason] += other.refused[reason];
  }

  counts(): CollectCounts {
    const { lines, events, flows, nothing, unparsed, generic, refused } = this;
    return { lines, events, flows, nothing, unparsed, generic, refused: { ...refused } };
  }
}
