import { addressBytes } from "../lib/ip.ts";
import { noDrops, type DropReason, type ExporterState, type ExporterStatus, type FlowVersion } from "./status.ts";
import { Sequence } from "./sequence.ts";
import { Domain } from "./netflow/domain.ts";
import type { TemplateRoom } from "./netflow/room.ts";

// One sender of flows: what it has told us that later packets need, and how it does.

/** Observation domains, engines or sub-agents of one exporter; each has its own templates and its own numbering. */
const DOMAINS_MAX = 256;
const MISSING_SHOWN_MAX = 64;
/** An exporter that says nothing for so long is called silent. */
const SILENT_AFTER_MS = 300_000;

export class Exporter {
  readonly index: number;
  readonly address: string;
  readonly addressBytes: Uint8Array;
  readonly firstSeenMs: number;
  packets = 0;
  records = 0;
  optionRecords = 0;
  templates = 0;
  lastSeenMs: number | null = null;
  lastRecordMs: number | null = null;
  /** When one of its records last went into a window. */
  lastTakenMs: number | null = null;
  samplingRate = 1;
  clockOffsetMs = 0;
  clockCorrected = false;
  gaps = 0;
  lost = 0;
  /** Sets of data that wait for their template. */
  waitingSets = 0;
  readonly versions = new Set<FlowVersion>();
  readonly drops = noDrops();
  readonly missing = new Set<number>();
  readonly #domains = new Map<number, Domain>();
  readonly #sequences = new Map<number, Sequence>();
  #missingSinceMs = 0;
  #lastError: { message: string; atMs: number } | null = null;
  #lastLate: { message: string; atMs: number } | null = null;

  constructor(index: number, address: string, nowMs: number) {
    this.index = index;
    this.address = address;
    this.addressBytes = addressBytes(address);
    this.firstSeenMs = nowMs;
  }

  /** `key` tells versions and domains apart. The one that was made first makes room. */
  domain(key: number, room: TemplateRoom): Domain {
    return keep(
      this.#domains,
      key,
      () => new Domain(),
      (gone) => room.release(this, gone.templates.size),
    );
  }

  observe(key: number, sequence: number, advance: number, included?: number): void {
    const lost = this.sequence(key).observe(sequence, advance, included);
    if (lost === 0) return;
    this.gaps++;
    this.lost += lost;
  }

  sequence(key: number): Sequence {
    return keep(this.#sequences, key, () => new Sequence());
  }

  drop(reason: DropReason, count: number, message: string, nowMs: number): void {
    this.drops[reason] += count;
    this.fail(message, nowMs);
  }

  dropLate(message: string, nowMs: number): void {
    this.drop("too_late", 1, message, nowMs);
    this.#lastLate = { message, atMs: nowMs };
  }

  fail(message: string, nowMs: number): void {
    this.#lastError = { message, atMs: nowMs };
  }

  misses(templateId: number, nowMs: number): void {
    if (this.missing.size === 0) this.#missingSinceMs = nowMs;
    if (this.missing.size < MISSING_SHOWN_MAX) this.missing.add(templateId);
  }

  status(nowMs: number, connected: boolean): ExporterStatus {
    const state = this.#state(nowMs);
    return {
      address: this.address,
      versions: [...this.versions],
      state,
      summary: this.#describe(state, nowMs, connected),
      packets: this.packets,
      records: this.records,
      optionRecords: this.optionRecords,
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      lastRecordMs: this.lastRecordMs,
      templates: this.templates,
      missingTemplates: [...this.missing],
      waitingSets: this.waitingSets,
      gaps: this.gaps,
      lost: this.lost,
      samplingRate: this.samplingRate,
      clockOffsetMs: Math.round(this.clockOffsetMs),
      clockCorrected: this.clockCorrected,
      drops: { ...this.drops },
      lastError: this.#lastError,
    };
  }

  #state(nowMs: number): ExporterState {
    if (this.lastSeenMs === null || nowMs - this.lastSeenMs > SILENT_AFTER_MS) return "silent";
    const recordMs = this.lastRecordMs ?? 0;
    if (this.missing.size > 0 && recordMs <= this.#missingSinceMs) return "no_template";
    if (this.#lastError && this.#lastError.atMs > recordMs && recordMs < nowMs - SILENT_AFTER_MS) return "failing";
    if (this.#isLate(nowMs) && nowMs - (this.lastTakenMs ?? 0) > SILENT_AFTER_MS) return "failing";
    return nowMs - recordMs <= SILENT_AFTER_MS ? "receiving" : "no_records";
  }

  /** Whether records were dropped lately since their flows had ended too long ago. */
  #isLate(nowMs: number): boolean {
    return this.#lastLate !== null && nowMs - this.#lastLate.atMs <= SILENT_AFTER_MS;
  }

  #describe(state: ExporterState, nowMs: number, connected: boolean): string {
    const seen = this.lastSeenMs;
    switch (state) {
      case "receiving":
        return this.#isLate(nowMs)
          ? `flows are coming in, and some of them are dropped: ${this.#lastLate!.message}`
          : "flows are coming in";
      case "no_template":
        return `no template yet: data has come for template ${[...this.missing].join(", ")}, which its exporter has not described; most send templates again within minutes`;
      case "no_records":
        return "packets are coming in, but none holds a flow record";
      case "failing":
        return this.#isLate(nowMs)
          ? `flows are coming in, but all of them are dropped: ${this.#lastLate!.message}`
          : `packets are coming in, but cannot be used: ${this.#lastError!.message}`;
      case "silent": {
        const who = connected ? "connected but silent" : "silent";
        return seen === null
          ? `${who}: nothing has been sent yet`
          : `${who}: the last packet came ${Math.round((nowMs - seen) / 60_000)} minutes ago`;
      }
    }
  }
}

function keep<Value>(
  map: Map<number, Value>,
  key: number,
  make: () => Value,
  leave: (gone: Value) => void = () => undefined,
): Value {
  const known = map.get(key);
  if (known) return known;
  if (map.size >= DOMAINS_MAX) {
    const [oldest, gone] = map.entries().next().value!;
    map.delete(oldest);
    leave(gone);
  }
  const made = make();
  map.set(key, made);
  return made;
}
