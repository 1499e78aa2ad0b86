import type { Exporter } from "../exporter.ts";

// Data that came before its template. Exporters send templates every few minutes; what is kept until then is not lost.

export const WAITING_BYTES_MAX = 8 * 1024 * 1024;
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

export class WaitingRoom {
  /** In the order of arrival, which is the order in which they are given up. */
  readonly #sets = new Set<WaitingSet>();
  readonly #bytes = new Map<Exporter, number>();
  #allBytes = 0;

  get bytes(): number {
    return this.#allBytes;
  }

  keep(set: WaitingSet): void {
    this.expire(set.receivedMs);
    const size = set.content.length;
    while ((this.#bytes.get(set.exporter) ?? 0) + size > WAITING_EXPORTER_BYTES_MAX) {
      this.#giveUp(
        this.#first((other) => other.exporter === set.exporter)!,
        set.receivedMs,
      );
    }
    while (this.#allBytes + size > WAITING_BYTES_MAX)
      this.#giveUp(
        this.#first(() => true)!,
        set.receivedMs,
      );
    this.#sets.add(set);
    this.#allBytes += size;
    this.#bytes.set(set.exporter, (this.#bytes.get(set.exporter) ?? 0) + size);
    set.exporter.waitingSets++;
  }

  /** What waited for this template, in the order of arrival. */
  take(exporter: Exporter, domainKey: number, templateId: number): WaitingSet[] {
    if (exporter.waitingSets === 0) return [];
    const taken = [...this.#sets].filter(
      (set) => set.exporter === exporter && set.domainKey === domainKey && set.templateId === templateId,
    );
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
    if (exporter.waitingSets === 0) return;
    for (const set of this.#sets) if (set.exporter === exporter) this.#giveUp(set, nowMs);
  }

  #first(suits: (set: WaitingSet) => boolean): WaitingSet | undefined {
    for (const set of this.#sets) if (suits(set)) return set;
    return undefined;
  }

  #giveUp(set: WaitingSet, nowMs: number): void {
    this.#remove(set);
    const message = `data for template ${set.templateId} was given up: the template did not come in time`;
    set.exporter.drop("no_template", 1, message, nowMs);
  }

  #remove(set: WaitingSet): void {
    this.#sets.delete(set);
    this.#allBytes -= set.content.length;
    const left = this.#bytes.get(set.exporter)! - set.content.length;
    if (left > 0) this.#bytes.set(set.exporter, left);
    else this.#bytes.delete(set.exporter);
    set.exporter.waitingSets--;
  }
}
