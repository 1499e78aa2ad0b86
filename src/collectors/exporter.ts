import { addressBytes, sixNetwork } from "../lib/ip.ts";
import { describeHealth, stateOf } from "./health.ts";
import { Domain, KnownTemplate, seniorRank, type AbsentTemplate } from "./netflow/domain.ts";
import type { Occupant, Room } from "./netflow/room.ts";
import type { Template } from "./netflow/template.ts";
import { isDecodingFailure, noDrops, type DropReason, type ExporterStatus, type FlowVersion } from "./status.ts";

// One sender of flows: what it has told us that later packets need, and how it does.

const MISSING_SHOWN_MAX = 64;
const PORTS = 65_536;
const TEMPLATE_IDS = 65_536;

/** The tables that all exporters share. */
export interface Rooms {
  readonly domains: Room<Domain>;
  readonly templates: Room<KnownTemplate>;
}

export interface Told {
  readonly message: string;
  readonly atMs: number;
}

export class Exporter implements Occupant {
  readonly index: number;
  readonly address: string;
  readonly addressBytes: Uint8Array;
  /** A host has as many IPv6 addresses as it likes: limits count by the /64. */
  readonly network: string;
  readonly firstSeenMs: number;
  packets = 0;
  records = 0;
  optionRecords = 0;
  templates = 0;
  /** Whether one of its templates has decoded a flow. */
  hasTemplateData = false;
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
  readonly #rooms: Rooms;
  /** By domain and port. */
  readonly #domains = new Map<number, Domain>();
  readonly #withOptions = new Set<Domain>();
  /** By domain and id: what the sessions of each port have described. */
  readonly #described = new Map<number, Set<KnownTemplate>>();
  #lastError: Told | null = null;
  #lastFailure: Told | null = null;
  #lastUnaddressedMs: number | null = null;
  #lastLate: Told | null = null;

  constructor(index: number, address: string, nowMs: number, rooms: Rooms) {
    this.index = index;
    this.address = address;
    this.addressBytes = addressBytes(address);
    this.network = sixNetwork(address) ?? address;
    this.firstSeenMs = nowMs;
    this.#rooms = rooms;
  }

  get isProven(): boolean {
    return this.records > 0;
  }

  get rankMs(): number {
    const seenMs = this.lastSeenMs ?? this.firstSeenMs;
    return this.isProven ? seniorRank(this.firstSeenMs, seenMs) : seenMs;
  }

  /** `key` tells protocols and domains apart; domains of two ports are two, RFC 7011 calls that a transport session. */
  domain(key: number, port: number, nowMs: number): Domain {
    const id = key * PORTS + port;
    let domain = this.#domains.get(id);
    if (!domain) {
      domain = new Domain(this, key, port, nowMs);
      this.#rooms.domains.admit(domain);
      this.#domains.set(id, domain);
    }
    domain.lastPacket = this.packets;
    domain.lastSeenMs = nowMs;
    return domain;
  }

  /** Lets go of a domain and its templates. */
  forgetDomain(domain: Domain): void {
    this.#rooms.domains.release(domain);
    this.#domains.delete(domain.key * PORTS + domain.port);
    this.#withOptions.delete(domain);
    for (const known of domain.templates.values()) this.forgetTemplate(known);
  }

  domains(): Iterable<Domain> {
    return this.#domains.values();
  }

  /** What one of its sessions has described in the same way. */
  findPlan(domain: Domain, templateId: number, options: boolean, spec: Uint8Array): Template | undefined {
    for (const { plan } of this.#described.get(domain.key * TEMPLATE_IDS + templateId) ?? []) {
      if (plan.options === options && sameBytes(plan.spec, spec)) return plan;
    }
    return undefined;
  }

  learn(domain: Domain, plan: Template, nowMs: number): KnownTemplate {
    const before = domain.templates.get(plan.id);
    if (before) this.forgetTemplate(before);
    const known = new KnownTemplate(domain, plan, nowMs);
    this.#rooms.templates.admit(known);
    domain.templates.set(plan.id, known);
    const key = domain.key * TEMPLATE_IDS + plan.id;
    const described = this.#described.get(key);
    if (described) described.add(known);
    else this.#described.set(key, new Set([known]));
    this.templates++;
    return known;
  }

  forgetTemplate(known: KnownTemplate): void {
    const { domain, plan } = known;
    this.#rooms.templates.release(known);
    if (domain.templates.get(plan.id) !== known) return;
    domain.templates.delete(plan.id);
    const key = domain.key * TEMPLATE_IDS + plan.id;
    const described = this.#described.get(key)!;
    described.delete(known);
    if (described.size === 0) this.#described.delete(key);
    this.templates--;
  }

  /**
   * The template of another session with the same domain, for an exporter that has changed its port (it restarted, or a NAT
   * on the way did). Only where nothing speaks against it: the other sessions agree on the template, and none of them has
   * sent anything since this one began.
   */
  borrowTemplate(domain: Domain, templateId: number): KnownTemplate | "ambiguous" | undefined {
    let found: KnownTemplate | undefined;
    for (const known of this.#described.get(domain.key * TEMPLATE_IDS + templateId) ?? []) {
      // Sessions that describe a template alike share its plan.
      if (known.domain.overlaps(domain) || (found && found.plan !== known.plan)) return "ambiguous";
      if (!found || known.domain.lastPacket > found.domain.lastPacket) found = known;
    }
    return found;
  }

  noteOptions(domain: Domain): void {
    if (domain.hasOptions) this.#withOptions.add(domain);
  }

  /** The domain whose options apply to records of this one: its own, or by the same rule that of another session. */
  optionsOf(domain: Domain): Domain {
    if (this.#withOptions.size === 0 || domain.hasOptions) return domain;
    let found: Domain | undefined;
    for (const other of this.#withOptions) {
      if (other.key !== domain.key) continue;
      if (other.overlaps(domain)) return domain;
      if (!found || other.lastPacket > found.lastPacket) found = other;
    }
    return found ?? domain;
  }

  observe(domain: Domain, sequence: number, advance: number, included?: number): void {
    const lost = domain.sequence.observe(sequence, advance, included);
    if (lost > 0) this.gaps++;
    this.lost += lost;
  }

  drop(reason: DropReason, count: number, message: string, nowMs: number): void {
    this.drops[reason] += count;
    this.#lastError = { message, atMs: nowMs };
    if (isDecodingFailure(reason)) this.#lastFailure = this.#lastError;
  }

  /** Data that was dropped as so many sets, for want of a template, turns out to have been so many records. */
  countDroppedRecords(sets: number, records: number): void {
    this.drops.no_template += Math.max(0, records - sets);
  }

  dropUnaddressed(count: number, nowMs: number): void {
    this.drops.no_address += count;
    this.#lastUnaddressedMs = nowMs;
  }

  dropLate(message: string, nowMs: number): void {
    this.drop("too_late", 1, message, nowMs);
    this.#lastLate = { message, atMs: nowMs };
  }

  status(nowMs: number, connected: boolean): ExporterStatus {
    const missing = this.#missing(nowMs);
    const health = {
      nowMs,
      connected,
      missing,
      lastSeenMs: this.lastSeenMs,
      lastRecordMs: this.lastRecordMs,
      lastTakenMs: this.lastTakenMs,
      lastFailure: this.#lastFailure,
      lastLate: this.#lastLate,
      lastUnaddressedMs: this.#lastUnaddressedMs,
      hasDescribed: this.templates > 0 || this.optionRecords > 0,
      clockOffsetMs: this.clockCorrected ? this.clockOffsetMs : 0,
    };
    const state = stateOf(health);
    return {
      address: this.address,
      versions: [...this.versions],
      state,
      summary: describeHealth(state, health),
      packets: this.packets,
      records: this.records,
      optionRecords: this.optionRecords,
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      lastRecordMs: this.lastRecordMs,
      sessions: new Set(Array.from(this.#domains.values(), ({ port }) => port)).size,
      templates: this.templates,
      missingTemplates: [...missing.keys()],
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

  /** Templates that data has come for lately, in any session, and that are not there. */
  #missing(nowMs: number): Map<number, AbsentTemplate> {
    const missing = new Map<number, AbsentTemplate>();
    for (const domain of this.#domains.values()) {
      for (const [id, absent] of domain.absent) {
        const waits = domain.waiting.has(id) || nowMs - absent.lastMs <= MISSING_MS;
        if (absent.lastMs === 0 || !waits || missing.size >= MISSING_SHOWN_MAX) continue;
        const other = missing.get(id);
        if (!other || absent.sinceMs < other.sinceMs) missing.set(id, absent);
      }
    }
    return missing;
  }
}

/** Data that has not come for so long is not missed any more. */
const MISSING_MS = 600_000;

export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
