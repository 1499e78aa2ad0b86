import type { Exporter } from "../exporter.ts";

// Data that came before its template. Exporters send templates every few minutes; what is kept until then is not lost.

const WAITING_BYTES_MAX = 8 * 1024 * 1024;
export const WAITING_EXPORTER_BYTES_MAX = 1024 * 1024;
export const WAITING_MS_MAX = 600_000;

export interface WaitingSet {
  readonly exporter: Exporter;
  readonly domainKey: number;
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
  readonly sets: Set<WaitingSet>;
  readonly byTemplate: Map<number, Set<WaitingSet>>;
  bytes: number;
}

export class WaitingRoom {
  /** In the order of arrival, which is the order in which they are given up. */
  readonly #sets = new Set<WaitingSet>();
  readonly #shelves = new Map<Exporter, Shelf>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  keep(set: WaitingSet): void {
    this.expire(set.receivedMs);
    const cost = costOf(set);
    const own = this.#shelves.get(set.exporter);
    for (const oldest of own?.sets ?? []) {
      if (own!.bytes + cost <= WAITING_EXPORTER_BYTES_MAX) break;
      this.#giveUp(oldest, set.receivedMs);
    }
    while (this.#bytes + cost > WAITING_BYTES_MAX) this.#giveUp(firstOf(this.#sets)!, set.receivedMs);
    const shelf = this.#shelves.get(set.exporter) ?? { sets: new Set(), byTemplate: new Map(), bytes: 0 };
    this.#shelves.set(set.exporter, shelf);
    shelf.sets.add(set);
    const key = keyOf(set.domainKey, set.templateId);
    const others = shelf.byTemplate.get(key);
    if (others) others.add(set);
    else shelf.byTemplate.set(key, new Set([set]));
    shelf.bytes += cost;
    this.#sets.add(set);
    this.#bytes += cost;
    set.exporter.waitingSets++;
  }

  /** What waited for this template, in the order of arrival. */
  take(exporter: Exporter, domainKey: number, templateId: number): WaitingSet[] {
    const taken = [...(this.#shelves.get(exporter)?.byTemplate.get(keyOf(domainKey, templateId)) ?? [])];
    for (const set of taken) this.#remove(set);
    return taken;
  }

  expire(nowMs: number): void {
    for (const set of this.#sets) {
      if (nowMs - set.receivedMs <= WAITING_MS_MAX) return;
      this.#giveUp(set, nowMs);
    }
  }

  /** An exporter that is forgotten takes what it waits for with it. */
  leave(exporter: Exporter, nowMs: number): void {
    for (const set of this.#shelves.get(exporter)?.sets ?? []) this.#giveUp(set, nowMs);
  }

  #giveUp(set: WaitingSet, nowMs: number): void {
    this.#remove(set);
    const message = `data for template ${set.templateId} was given up: the template did not come in time`;
    set.exporter.drop("no_template", 1, message, nowMs);
  }

  #remove(set: WaitingSet): void {
    const cost = costOf(set);
    this.#sets.delete(set);
    this.#bytes -= cost;
    const shelf = this.#shelves.get(set.exporter)!;
    shelf.sets.delete(set);
    const key = keyOf(set.domainKey, set.templateId);
    const others = shelf.byTemplate.get(key)!;
    others.delete(set);
    if (others.size === 0) shelf.byTemplate.delete(key);
    shelf.bytes -= cost;
    if (shelf.sets.size === 0) this.#shelves.delete(set.exporter);
    set.exporter.waitingSets--;
  }
}

/** Ids of templates have 16 bits, and keys of domains leave room for them. */
function keyOf(domainKey: number, templateId: number): number {
  return domainKey * 65_536 + templateId;
}

function costOf({ content }: WaitingSet): number {
  return content.length + SET_COST_BYTES;
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  return items.values().next().value;
}
