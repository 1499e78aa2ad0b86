import type { FlowVersion } from "../status.ts";
import type { Domain } from "./domain.ts";

// Data that came before its template. Exporters send templates every few minutes; what is kept until then is not lost.

const WAITING_BYTES_MAX = 16 * 1024 * 1024;
/** Of one network: an IPv4 address, or the /64 of an IPv6 address. */
export const WAITING_NETWORK_BYTES_MAX = 8 * 1024 * 1024;
export const WAITING_MS_MAX = 600_000;
/** Sets that are looked at again each second: a flood of them must not take the time of everything else. */
const RETRIES_MAX = 1000;

export interface WaitingSet {
  readonly domain: Domain;
  readonly version: FlowVersion;
  readonly templateId: number;
  readonly content: Uint8Array;
  readonly receivedMs: number;
  readonly exportMs: number;
  readonly uptimeMs: number;
  readonly shiftMs: number;
}

/** What keeping a set costs beside its bytes: many small ones must not be cheaper than they are. */
export const SET_COST_BYTES = 256;

interface Shelf {
  /** In the order of arrival. */
  readonly sets: Set<WaitingSet>;
  bytes: number;
}

export class WaitingRoom {
  /** In the order of arrival. */
  readonly #sets = new Set<WaitingSet>();
  readonly #shelves = new Map<string, Shelf>();
  /** The one that was looked at longest ago first. */
  readonly #retries = new Set<WaitingSet>();
  readonly #rescue: (set: WaitingSet, nowMs: number) => boolean;
  #bytes = 0;

  /** `rescue` decodes a set by a template of another session; false where there is none that it may use. */
  constructor(rescue: (set: WaitingSet, nowMs: number) => boolean) {
    this.#rescue = rescue;
  }

  get bytes(): number {
    return this.#bytes;
  }

  keep(set: WaitingSet): void {
    const nowMs = set.receivedMs;
    this.expire(nowMs);
    const cost = costOf(set);
    const { network, exporter } = set.domain;
    const own = this.#shelves.get(network);
    for (const oldest of own?.sets ?? []) {
      if (own!.bytes + cost <= WAITING_NETWORK_BYTES_MAX) break;
      this.#giveUp(oldest, `its address has ${WAITING_NETWORK_BYTES_MAX} bytes waiting, the most that one may`, nowMs);
    }
    while (this.#bytes + cost > WAITING_BYTES_MAX) {
      const why = `all ${WAITING_BYTES_MAX} bytes for waiting data are taken`;
      this.#giveUp(firstOf(this.#largest().sets)!, why, nowMs);
    }
    const shelf = this.#shelves.get(network) ?? { sets: new Set(), bytes: 0 };
    this.#shelves.set(network, shelf);
    shelf.sets.add(set);
    shelf.bytes += cost;
    const others = set.domain.waiting.get(set.templateId);
    if (others) others.add(set);
    else set.domain.waiting.set(set.templateId, new Set([set]));
    this.#sets.add(set);
    this.#retries.add(set);
    this.#bytes += cost;
    exporter.waitingSets++;
  }

  /** What waited for this template, in the order of arrival. */
  take(domain: Domain, templateId: number): WaitingSet[] {
    const taken = [...(domain.waiting.get(templateId) ?? [])];
    for (const set of taken) this.#remove(set);
    return taken;
  }

  expire(nowMs: number): void {
    for (const set of this.#sets) {
      if (nowMs - set.receivedMs <= WAITING_MS_MAX) return;
      if (this.#rescue(set, nowMs)) this.#remove(set);
      else this.#giveUp(set, `the template did not come within ${WAITING_MS_MAX / 60_000} minutes`, nowMs);
    }
  }

  /** Tries what waits by the templates of other sessions. */
  retry(nowMs: number): void {
    let left = Math.min(RETRIES_MAX, this.#retries.size);
    for (const set of this.#retries) {
      if (left-- === 0) return;
      if (this.#rescue(set, nowMs)) this.#remove(set);
      else {
        this.#retries.delete(set);
        this.#retries.add(set);
      }
    }
  }

  /** A domain that is forgotten takes what it waits for with it. */
  leave(domain: Domain, why: string, nowMs: number): void {
    for (const sets of domain.waiting.values()) for (const set of sets) this.#giveUp(set, why, nowMs);
  }

  /** The one to take from when there is no room left: a single sender cannot push out what others wait for. */
  #largest(): Shelf {
    let largest: Shelf | undefined;
    for (const shelf of this.#shelves.values()) if (!largest || shelf.bytes > largest.bytes) largest = shelf;
    return largest!;
  }

  #giveUp(set: WaitingSet, why: string, nowMs: number): void {
    this.#remove(set);
    const { domain, templateId, content } = set;
    domain.dropped(templateId, content.length);
    domain.exporter.drop("no_template", 1, `data for template ${templateId} was given up: ${why}`, nowMs);
  }

  #remove(set: WaitingSet): void {
    const cost = costOf(set);
    const { domain, templateId } = set;
    this.#sets.delete(set);
    this.#retries.delete(set);
    this.#bytes -= cost;
    const shelf = this.#shelves.get(domain.network)!;
    shelf.sets.delete(set);
    shelf.bytes -= cost;
    if (shelf.sets.size === 0) this.#shelves.delete(domain.network);
    const others = domain.waiting.get(templateId)!;
    others.delete(set);
    if (others.size === 0) domain.waiting.delete(templateId);
    domain.exporter.waitingSets--;
  }
}

function costOf({ content }: WaitingSet): number {
  return content.length + SET_COST_BYTES;
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  return items.values().next().value;
}
