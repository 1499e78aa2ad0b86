import type { FlowExporter } from "../flow-exporter.ts";
import type { FlowVersion } from "../flow-status.ts";
import type { ObservationDomain } from "./observation-domain.ts";

// Data sets that arrived before their template. Exporters resend templates every few minutes; data kept until then is not lost.

const UNDECODED_BYTES_MAX = 16 * 1024 * 1024;
/** The limit of one network: an IPv4 address, or the /64 of an IPv6 address. */
export const UNDECODED_NETWORK_BYTES_MAX = 8 * 1024 * 1024;
export const UNDECODED_MS_MAX = 600_000;
/** Sets retried each second, so that a flood of them does not starve other work. */
const RETRIES_MAX = 1000;

export interface UndecodedSet {
  readonly exporter: FlowExporter;
  readonly domain: ObservationDomain;
  readonly version: FlowVersion;
  readonly templateId: number;
  readonly content: Uint8Array;
  readonly receivedMs: number;
  readonly exportMs: number;
  readonly uptimeMs: number;
  readonly shiftMs: number;
}

/** The memory that a set takes beyond its bytes, so that many small sets count in full. */
export const SET_OVERHEAD_BYTES = 256;

interface NetworkShare {
  /** In order of arrival. */
  readonly sets: Set<UndecodedSet>;
  bytes: number;
}

/** Decodes a set with the template of another session; false if there is none that it may use. */
type DecodeBorrowed = (set: UndecodedSet, nowMs: number) => boolean;

export class UndecodedSets {
  /** In order of arrival. */
  readonly #sets = new Set<UndecodedSet>();
  readonly #shares = new Map<string, NetworkShare>();
  readonly #byDomain = new Map<ObservationDomain, Map<number, Set<UndecodedSet>>>();
  /** Least recently retried first. */
  readonly #retryQueue = new Set<UndecodedSet>();
  readonly #decodeBorrowed: DecodeBorrowed;
  #bytes = 0;

  constructor(decodeBorrowed: DecodeBorrowed) {
    this.#decodeBorrowed = decodeBorrowed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(set: UndecodedSet): void {
    const nowMs = set.receivedMs;
    this.expire(nowMs);
    const cost = costOf(set);
    const { network } = set.domain;
    const own = this.#shares.get(network);
    for (const oldest of own?.sets ?? []) {
      if (own!.bytes + cost <= UNDECODED_NETWORK_BYTES_MAX) break;
      this.#drop(oldest, `its address reached the limit of ${UNDECODED_NETWORK_BYTES_MAX} undecoded bytes`, nowMs);
    }
    while (this.#bytes + cost > UNDECODED_BYTES_MAX) {
      const reason = `all exporters together reached the limit of ${UNDECODED_BYTES_MAX} undecoded bytes`;
      this.#drop(firstOf(this.#largestShare().sets)!, reason, nowMs);
    }
    const share = this.#shares.get(network) ?? { sets: new Set(), bytes: 0 };
    this.#shares.set(network, share);
    share.sets.add(set);
    share.bytes += cost;
    this.#index(set);
    this.#sets.add(set);
    this.#retryQueue.add(set);
    this.#bytes += cost;
    set.exporter.waitingSets++;
  }

  /** Removes and returns the sets of a template, in order of arrival. */
  take(domain: ObservationDomain, templateId: number): UndecodedSet[] {
    const taken = [...(this.#byDomain.get(domain)?.get(templateId) ?? [])];
    for (const set of taken) this.#remove(set);
    return taken;
  }

  expire(nowMs: number): void {
    for (const set of this.#sets) {
      if (nowMs - set.receivedMs <= UNDECODED_MS_MAX) return;
      if (this.#decodeBorrowed(set, nowMs)) this.#remove(set);
      else this.#drop(set, `the template did not arrive within ${UNDECODED_MS_MAX / 60_000} minutes`, nowMs);
    }
  }

  /** Tries to decode sets with the templates of other sessions. */
  retry(nowMs: number): void {
    let left = Math.min(RETRIES_MAX, this.#retryQueue.size);
    for (const set of this.#retryQueue) {
      if (left-- === 0) return;
      if (this.#decodeBorrowed(set, nowMs)) this.#remove(set);
      else {
        this.#retryQueue.delete(set);
        this.#retryQueue.add(set);
      }
    }
  }

  /** Drops the sets of a domain that is being removed. */
  dropDomain(domain: ObservationDomain, reason: string, nowMs: number): void {
    for (const sets of this.#byDomain.get(domain)?.values() ?? []) {
      for (const set of sets) this.#drop(set, reason, nowMs);
    }
  }

  /** The share to drop from when the total is reached, so that one sender cannot displace the data of others. */
  #largestShare(): NetworkShare {
    let largest: NetworkShare | undefined;
    for (const share of this.#shares.values()) if (!largest || share.bytes > largest.bytes) largest = share;
    return largest!;
  }

  #drop(set: UndecodedSet, reason: string, nowMs: number): void {
    this.#remove(set);
    const { exporter, domain, templateId, content } = set;
    domain.absent.noteDropped(templateId, content.length);
    exporter.drop("no_template", 1, `data for template ${templateId} was dropped: ${reason}`, nowMs);
  }

  #index(set: UndecodedSet): void {
    const { domain, templateId } = set;
    let byTemplate = this.#byDomain.get(domain);
    if (!byTemplate) {
      byTemplate = new Map();
      this.#byDomain.set(domain, byTemplate);
    }
    const others = byTemplate.get(templateId);
    if (others) others.add(set);
    else byTemplate.set(templateId, new Set([set]));
    domain.awaitedTemplates.add(templateId);
  }

  #unindex(set: UndecodedSet): void {
    const { domain, templateId } = set;
    const byTemplate = this.#byDomain.get(domain)!;
    const others = byTemplate.get(templateId)!;
    others.delete(set);
    if (others.size > 0) return;
    byTemplate.delete(templateId);
    domain.awaitedTemplates.delete(templateId);
    if (byTemplate.size === 0) this.#byDomain.delete(domain);
  }

  #remove(set: UndecodedSet): void {
    const cost = costOf(set);
    const { network } = set.domain;
    this.#sets.delete(set);
    this.#retryQueue.delete(set);
    this.#bytes -= cost;
    const share = this.#shares.get(network)!;
    share.sets.delete(set);
    share.bytes -= cost;
    if (share.sets.size === 0) this.#shares.delete(network);
    this.#unindex(set);
    set.exporter.waitingSets--;
  }
}

function costOf({ content }: UndecodedSet): number {
  return content.length + SET_OVERHEAD_BYTES;
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  return items.values().next().value;
}
