import type { Exporter } from "../exporter.ts";
import { Sequence } from "../sequence.ts";
import type { Occupant } from "./room.ts";
import type { Template } from "./template.ts";
import type { WaitingSet } from "./waiting.ts";

/** Samplers that one observation domain may name. */
const SAMPLERS_MAX = 256;
/** Templates of a domain that are not there, and why. */
const ABSENT_MAX = 32;
/** What has been of use for so long stays that much longer than what has only just begun to be. */
const SENIORITY_MS_MAX = 3_600_000;
/** Puts what was never used before everything that was. */
const UNUSED_PENALTY_MS = 1e13;

/** The rank of something that was first seen and last used at these times. */
export function seniorRank(sinceMs: number, usedMs: number): number {
  return usedMs + Math.min(usedMs - sinceMs, SENIORITY_MS_MAX);
}

/** A template that an exporter has described, and when it was last of use. */
export class KnownTemplate implements Occupant {
  readonly domain: Domain;
  readonly plan: Template;
  readonly learnedMs: number;
  /** When the exporter last sent it. */
  sentMs: number;
  /** When it last decoded a record; 0 where it never has. */
  usedMs = 0;

  constructor(domain: Domain, plan: Template, nowMs: number) {
    this.domain = domain;
    this.plan = plan;
    this.learnedMs = nowMs;
    this.sentMs = nowMs;
  }

  get network(): string {
    return this.domain.network;
  }

  get isProven(): boolean {
    return this.domain.exporter.hasTemplateData;
  }

  get rankMs(): number {
    return this.usedMs === 0 ? this.sentMs - UNUSED_PENALTY_MS : seniorRank(this.learnedMs, this.usedMs);
  }
}

/** What is kept of a template over a restart. */
export interface KeptTemplate {
  readonly options: boolean;
  /** As it came, in base64. */
  readonly spec: string;
  readonly learnedMs: number;
  readonly sentMs: number;
  readonly usedMs: number;
}

/** What is kept of a domain of one session. */
export interface KeptDomain {
  readonly address: string;
  readonly port: number;
  readonly key: number;
  readonly options: KeptOptions;
  readonly templates: readonly KeptTemplate[];
}

export interface KeptOptions {
  readonly systemStartMs: number | null;
  readonly rate: number | null;
  readonly samplers: readonly (readonly [id: number, rate: number])[];
}

/** A template that is not there. */
export interface AbsentTemplate {
  /** Why, where it is known: it was refused, evicted, withdrawn. Otherwise the exporter has not described it. */
  why: string | undefined;
  /** When data first and last came for it; 0 where none has. */
  sinceMs: number;
  lastMs: number;
  /** Data that was given up. */
  droppedSets: number;
  droppedBytes: number;
}

/**
 * What an exporter has told about one observation domain (or engine, or sub-agent) in one transport session: by address and
 * port. Two exporters behind one address have the same domains and template ids, and mean different things by them.
 */
export class Domain implements Occupant {
  readonly exporter: Exporter;
  /** Tells protocols and domains apart. */
  readonly key: number;
  readonly port: number;
  readonly templates = new Map<number, KnownTemplate>();
  readonly absent = new Map<number, AbsentTemplate>();
  /** Data that waits for its template, by the template's id. */
  readonly waiting = new Map<number, Set<WaitingSet>>();
  readonly sequence = new Sequence();
  /** The first and last packet of this session, counted over all packets of the exporter. */
  readonly firstPacket: number;
  lastPacket: number;
  readonly firstSeenMs: number;
  lastSeenMs: number;
  /** When one of its templates last decoded a record; 0 where none has. */
  usedMs = 0;
  /** When the exporter's clock of uptime began, where it said so. */
  systemStartMs: number | undefined;
  readonly #samplers = new Map<number, number>();
  #rate: number | undefined;

  constructor(exporter: Exporter, key: number, port: number, nowMs: number) {
    this.exporter = exporter;
    this.key = key;
    this.port = port;
    this.firstPacket = exporter.packets;
    this.lastPacket = exporter.packets;
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
  }

  get network(): string {
    return this.exporter.network;
  }

  get isProven(): boolean {
    return this.usedMs > 0;
  }

  get rankMs(): number {
    return this.isProven ? seniorRank(this.firstSeenMs, this.usedMs) : this.lastSeenMs - UNUSED_PENALTY_MS;
  }

  /** Whether it has told how it samples, or when its uptime began. */
  get hasOptions(): boolean {
    return this.#rate !== undefined || this.#samplers.size > 0 || this.systemStartMs !== undefined;
  }

  /** Whether packets of the two came in turns: then they are two exporters, not one that has changed its port. */
  overlaps(other: Domain): boolean {
    return this.firstPacket <= other.lastPacket && other.firstPacket <= this.lastPacket;
  }

  setRate(sampler: number | undefined, rate: number): void {
    if (sampler === undefined) this.#rate = rate;
    else if (this.#samplers.has(sampler) || this.#samplers.size < SAMPLERS_MAX) this.#samplers.set(sampler, rate);
  }

  /** The rate of the sampler that a record names; of the domain where it names none. */
  rateOf(sampler: number | undefined): number {
    if (sampler !== undefined) return this.#samplers.get(sampler) ?? this.#rate ?? 1;
    if (this.#rate !== undefined) return this.#rate;
    // The only sampler there is needs no naming.
    return this.#samplers.size === 1 ? this.#samplers.values().next().value! : 1;
  }

  get options(): KeptOptions {
    const { systemStartMs = null } = this;
    return { systemStartMs, rate: this.#rate ?? null, samplers: [...this.#samplers] };
  }

  set options({ systemStartMs, rate, samplers }: KeptOptions) {
    this.systemStartMs = systemStartMs ?? undefined;
    this.#rate = rate ?? undefined;
    for (const [id, own] of samplers) this.setRate(id, own);
  }

  /** Data came for a template that is not there. */
  miss(templateId: number, nowMs: number): void {
    const absent = this.#absent(templateId);
    if (absent.lastMs === 0) absent.sinceMs = nowMs;
    absent.lastMs = nowMs;
  }

  /** Says why a template is not there. */
  lack(templateId: number, why: string): void {
    this.#absent(templateId).why = why;
  }

  /** Data for a template that is not there was dropped. */
  dropped(templateId: number, bytes: number): void {
    const absent = this.#absent(templateId);
    absent.droppedSets++;
    absent.droppedBytes += bytes;
  }

  #absent(templateId: number): AbsentTemplate {
    const known = this.absent.get(templateId);
    if (known) return known;
    if (this.absent.size >= ABSENT_MAX) {
      // One that no data ever came for is missed by nobody.
      const unneeded = this.absent.entries().find(([, { lastMs }]) => lastMs === 0);
      this.absent.delete(unneeded?.[0] ?? this.absent.keys().next().value!);
    }
    const absent = { why: undefined, sinceMs: 0, lastMs: 0, droppedSets: 0, droppedBytes: 0 };
    this.absent.set(templateId, absent);
    return absent;
  }
}
