import { addressBytes, sixNetwork } from "../../lib/ip.ts";
import { MinuteCounts } from "../../lib/minute-counts.ts";
import { describeHealth, exporterState } from "./exporter-health.ts";
import {
  isDecodingFailure,
  noDrops,
  type DropReason,
  type ExporterStatus,
  type FlowVersion,
  type TimedMessage,
} from "./flow-status.ts";
import type { AbsentTemplate } from "./netflow/absent-templates.ts";
import { evictionRank, KnownTemplate, ObservationDomain, type DomainOwner } from "./netflow/observation-domain.ts";
import type { RecordTemplate } from "./netflow/record-template.ts";
import type { LimitedEntry, TemplateLimit } from "./netflow/template-limit.ts";

// One flow exporter: the templates and options that later packets need, and its health.

const MISSING_SHOWN_MAX = 64;
/** A missing template is no longer reported once data for it has stopped for this long. */
const MISSING_SHOWN_MS = 600_000;
const PORTS = 65_536;
const TEMPLATE_IDS = 65_536;

/** Limits that all exporters share. */
export interface SharedLimits {
  readonly domains: TemplateLimit<ObservationDomain>;
  readonly templates: TemplateLimit<KnownTemplate>;
}

export class FlowExporter implements DomainOwner, LimitedEntry {
  readonly index: number;
  readonly address: string;
  readonly addressBytes: Uint8Array;
  /** The IPv4 address, or the /64 of an IPv6 address, since a host can choose any address of its /64. */
  readonly network: string;
  readonly firstSeenMs: number;
  packets = 0;
  records = 0;
  optionRecords = 0;
  templates = 0;
  hasTemplateData = false;
  lastSeenMs: number | null = null;
  lastRecordMs: number | null = null;
  /** When one of its records was last added to a window. */
  lastAcceptedMs: number | null = null;
  samplingRate = 1;
  clockOffsetMs = 0;
  clockCorrected = false;
  gaps = 0;
  lost = 0;
  /** Data sets that wait for their template. */
  waitingSets = 0;
  readonly versions = new Set<FlowVersion>();
  readonly drops = noDrops();
  readonly #limits: SharedLimits;
  /** By domain key and port. */
  readonly #domains = new Map<number, ObservationDomain>();
  readonly #domainsWithOptions = new Set<ObservationDomain>();
  /** By domain key and template id: the templates that the sessions have described. */
  readonly #templatesById = new Map<number, Set<KnownTemplate>>();
  #lastError: TimedMessage | null = null;
  #lastFailure: TimedMessage | null = null;
  #lastUnaddressedMs: number | null = null;
  #lastLate: TimedMessage | null = null;
  readonly #rate = new MinuteCounts();

  constructor(index: number, address: string, nowMs: number, limits: SharedLimits) {
    this.index = index;
    this.address = address;
    this.addressBytes = addressBytes(address);
    this.network = sixNetwork(address) ?? address;
    this.firstSeenMs = nowMs;
    this.#limits = limits;
  }

  countPacket(atMs: number): void {
    this.packets++;
    this.lastSeenMs = atMs;
    this.#rate.add(atMs);
  }

  get isProven(): boolean {
    return this.records > 0;
  }

  get rankMs(): number {
    const seenMs = this.lastSeenMs ?? this.firstSeenMs;
    return this.isProven ? evictionRank(this.firstSeenMs, seenMs) : seenMs;
  }

  /** The domain of a transport session (RFC 7011). `key` identifies the protocol and the domain; each port is its own session. */
  domain(key: number, port: number, nowMs: number): ObservationDomain {
    const id = key * PORTS + port;
    let domain = this.#domains.get(id);
    if (!domain) {
      domain = new ObservationDomain(this, key, port, nowMs);
      this.#limits.domains.admit(domain);
      this.#domains.set(id, domain);
    }
    domain.lastPacket = this.packets;
    domain.lastSeenMs = nowMs;
    return domain;
  }

  /** Removes a domain and its templates. */
  removeDomain(domain: ObservationDomain): void {
    this.#limits.domains.release(domain);
    this.#domains.delete(domain.key * PORTS + domain.port);
    this.#domainsWithOptions.delete(domain);
    for (const known of domain.templates.values()) this.removeTemplate(known);
  }

  domains(): Iterable<ObservationDomain> {
    return this.#domains.values();
  }

  /** An identical template that another session has described. */
  findTemplate(
    domain: ObservationDomain,
    templateId: number,
    options: boolean,
    spec: Uint8Array,
  ): RecordTemplate | undefined {
    for (const { plan } of this.#templatesById.get(domain.key * TEMPLATE_IDS + templateId) ?? []) {
      if (plan.options === options && sameBytes(plan.spec, spec)) return plan;
    }
    return undefined;
  }

  learnTemplate(domain: ObservationDomain, plan: RecordTemplate, nowMs: number): KnownTemplate {
    const before = domain.templates.get(plan.id);
    if (before) this.removeTemplate(before);
    const known = new KnownTemplate(domain, plan, nowMs);
    this.#limits.templates.admit(known);
    domain.templates.set(plan.id, known);
    const key = domain.key * TEMPLATE_IDS + plan.id;
    const sessions = this.#templatesById.get(key);
    if (sessions) sessions.add(known);
    else this.#templatesById.set(key, new Set([known]));
    this.templates++;
    return known;
  }

  removeTemplate(known: KnownTemplate): void {
    const { domain, plan } = known;
    this.#limits.templates.release(known);
    if (domain.templates.get(plan.id) !== known) return;
    domain.templates.delete(plan.id);
    const key = domain.key * TEMPLATE_IDS + plan.id;
    const sessions = this.#templatesById.get(key)!;
    sessions.delete(known);
    if (sessions.size === 0) this.#templatesById.delete(key);
    this.templates--;
  }

  /**
   * The template of another session of the same domain, for an exporter whose port has changed (a restart, or a NAT). The other
   * sessions must agree on the template, and none of them may have sent anything since this one began.
   */
  borrowTemplate(domain: ObservationDomain, templateId: number): KnownTemplate | "ambiguous" | undefined {
    let found: KnownTemplate | undefined;
    for (const known of this.#templatesById.get(domain.key * TEMPLATE_IDS + templateId) ?? []) {
      // Sessions with identical templates share the plan.
      if (known.domain.overlaps(domain) || (found && found.plan !== known.plan)) return "ambiguous";
      if (!found || known.domain.lastPacket > found.domain.lastPacket) found = known;
    }
    return found;
  }

  registerOptions(domain: ObservationDomain): void {
    if (domain.hasOptions) this.#domainsWithOptions.add(domain);
  }

  /** The domain whose options apply to records of this one: itself, or another session's by the rule of `borrowTemplate`. */
  optionsOf(domain: ObservationDomain): ObservationDomain {
    if (this.#domainsWithOptions.size === 0 || domain.hasOptions) return domain;
    let found: ObservationDomain | undefined;
    for (const other of this.#domainsWithOptions) {
      if (other.key !== domain.key) continue;
      if (other.overlaps(domain)) return domain;
      if (!found || other.lastPacket > found.lastPacket) found = other;
    }
    return found ?? domain;
  }

  observe(domain: ObservationDomain, sequence: number, advance: number, included?: number): void {
    const lost = domain.sequence.observe(sequence, advance, included);
    if (lost > 0) this.gaps++;
    this.lost += lost;
  }

  drop(reason: DropReason, count: number, message: string, nowMs: number): void {
    this.drops[reason] += count;
    this.#lastError = { message, atMs: nowMs };
    if (isDecodingFailure(reason)) this.#lastFailure = this.#lastError;
  }

  /** Recounts dropped sets as records, once the template is known. */
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
      lastAcceptedMs: this.lastAcceptedMs,
      lastFailure: this.#lastFailure,
      lastLate: this.#lastLate,
      lastUnaddressedMs: this.#lastUnaddressedMs,
      hasTemplatesOrOptions: this.templates > 0 || this.optionRecords > 0,
      clockOffsetMs: this.clockCorrected ? this.clockOffsetMs : 0,
    };
    const state = exporterState(health);
    return {
      address: this.address,
      versions: [...this.versions],
      state,
      summary: describeHealth(state, health),
      packets: this.packets,
      rate: this.#rate.status(nowMs),
      records: this.records,
      optionRecords: this.optionRecords,
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      lastRecordMs: this.lastRecordMs,
      sessions: new Set(Array.from(this.#domains.values(), ({ port }) => port)).size,
      templates: this.templates,
      missingTemplates: [...missing.keys()],
      absentTemplates: Array.from(missing, ([id, { reason, sinceMs, lastMs, droppedSets }]) => ({
        id,
        sinceMs,
        lastMs,
        droppedSets,
        reason: reason ?? null,
      })),
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

  /** Templates that recent data of any session needs and that are not there. */
  #missing(nowMs: number): Map<number, AbsentTemplate> {
    const missing = new Map<number, AbsentTemplate>();
    for (const domain of this.#domains.values()) {
      for (const [id, absent] of domain.absent.entries()) {
        const isNeeded = domain.awaitedTemplates.has(id) || nowMs - absent.lastMs <= MISSING_SHOWN_MS;
        if (absent.lastMs === 0 || !isNeeded || missing.size >= MISSING_SHOWN_MAX) continue;
        const other = missing.get(id);
        if (!other || absent.sinceMs < other.sinceMs) missing.set(id, absent);
      }
    }
    return missing;
  }
}

export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
