import { SequenceTracker } from "../sequence-numbers.ts";
import { AbsentTemplates } from "./absent-templates.ts";
import type { RecordTemplate } from "./record-template.ts";
import type { SavedOptions } from "./saved-templates.ts";
import type { LimitedEntry } from "./template-limit.ts";

/** Samplers that one observation domain may name. */
const SAMPLERS_MAX = 256;
/** Limit of the extra time that long use earns an entry before eviction. */
const SENIORITY_MS_MAX = 3_600_000;
/** Ranks unused entries below all used ones. */
const UNUSED_PENALTY_MS = 1e13;

/** The eviction rank of an entry that was first seen and last used at these times. */
export function evictionRank(sinceMs: number, usedMs: number): number {
  return usedMs + Math.min(usedMs - sinceMs, SENIORITY_MS_MAX);
}

/** The exporter of a domain, as far as the domain depends on it. */
export interface DomainOwner {
  readonly address: string;
  readonly network: string;
  readonly packets: number;
  /** True once one of its templates has decoded a flow. */
  readonly hasTemplateData: boolean;
}

/** A template that an exporter has described, with the times of its last use. */
export class KnownTemplate implements LimitedEntry {
  readonly domain: ObservationDomain;
  readonly plan: RecordTemplate;
  readonly learnedMs: number;
  /** When the exporter last sent it. */
  sentMs: number;
  /** When it last decoded a record; 0 if it never has. */
  usedMs = 0;

  constructor(domain: ObservationDomain, plan: RecordTemplate, nowMs: number) {
    this.domain = domain;
    this.plan = plan;
    this.learnedMs = nowMs;
    this.sentMs = nowMs;
  }

  get network(): string {
    return this.domain.network;
  }

  get isProven(): boolean {
    return this.domain.owner.hasTemplateData;
  }

  get rankMs(): number {
    return this.usedMs === 0 ? this.sentMs - UNUSED_PENALTY_MS : evictionRank(this.learnedMs, this.usedMs);
  }
}

/**
 * The state of one observation domain (or engine, or sub-agent) in one transport session, identified by address and port. Two
 * exporters behind one address may use the same domain and template ids with different meanings.
 */
export class ObservationDomain implements LimitedEntry {
  readonly owner: DomainOwner;
  /** Identifies the protocol and the domain. */
  readonly key: number;
  readonly port: number;
  readonly templates = new Map<number, KnownTemplate>();
  readonly absent = new AbsentTemplates();
  /** Ids of templates that undecoded sets wait for. */
  readonly awaitedTemplates = new Set<number>();
  readonly sequence = new SequenceTracker();
  /** The first and the last packet of this session, counted over all packets of the exporter. */
  readonly firstPacket: number;
  lastPacket: number;
  readonly firstSeenMs: number;
  lastSeenMs: number;
  /** When one of its templates last decoded a record; 0 if none has. */
  usedMs = 0;
  /** When the exporter's uptime clock started, if reported. */
  systemStartMs: number | undefined;
  readonly #samplers = new Map<number, number>();
  #rate: number | undefined;

  constructor(owner: DomainOwner, key: number, port: number, nowMs: number) {
    this.owner = owner;
    this.key = key;
    this.port = port;
    this.firstPacket = owner.packets;
    this.lastPacket = owner.packets;
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
  }

  get network(): string {
    return this.owner.network;
  }

  get isProven(): boolean {
    return this.usedMs > 0;
  }

  get rankMs(): number {
    return this.isProven ? evictionRank(this.firstSeenMs, this.usedMs) : this.lastSeenMs - UNUSED_PENALTY_MS;
  }

  /** True once the exporter has reported a sampling rate or the start of its uptime. */
  get hasOptions(): boolean {
    return this.#rate !== undefined || this.#samplers.size > 0 || this.systemStartMs !== undefined;
  }

  /** True if packets of the two interleave: they are two exporters, not one that has changed its port. */
  overlaps(other: ObservationDomain): boolean {
    return this.firstPacket <= other.lastPacket && other.firstPacket <= this.lastPacket;
  }

  setRate(sampler: number | undefined, rate: number): void {
    if (sampler === undefined) this.#rate = rate;
    else if (this.#samplers.has(sampler) || this.#samplers.size < SAMPLERS_MAX) this.#samplers.set(sampler, rate);
  }

  /** The rate of the sampler that a record names, or of the domain if it names none. */
  rateOf(sampler: number | undefined): number {
    if (sampler !== undefined) return this.#samplers.get(sampler) ?? this.#rate ?? 1;
    if (this.#rate !== undefined) return this.#rate;
    // A single sampler applies to records that name none.
    return this.#samplers.size === 1 ? this.#samplers.values().next().value! : 1;
  }

  get options(): SavedOptions {
    const { systemStartMs = null } = this;
    return { systemStartMs, rate: this.#rate ?? null, samplers: [...this.#samplers] };
  }

  set options({ systemStartMs, rate, samplers }: SavedOptions) {
    this.systemStartMs = systemStartMs ?? undefined;
    this.#rate = rate ?? undefined;
    for (const [id, own] of samplers) this.setRate(id, own);
  }
}
