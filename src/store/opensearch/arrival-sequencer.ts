import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { DAY_MS } from "../../lib/time.ts";
import type { ArrivalLog, ArrivalRange, ShardPosition } from "../ports/arrival-log.ts";
import { LeaseLost, type Fence } from "../ports/lease-store.ts";
import { amended, keyOf, numbered, unamended, type EventShards, type ShardProgress } from "./event-shards.ts";

// Adds to the log of arrivals which numbers of the shards have become complete. One node does, by lease.

/** How often the shards are asked when nobody requests it. */
const ROUND_MS = 250;
const RETRY_MS = 1000;
/** Numbers in one row, which are read at once. */
const ROW_NUMBERS_MAX = 500;
/** Longer than any rule remembers. */
const KEPT_MS = 8 * DAY_MS;
const PRUNE_MS = 3_600_000;

export interface SequencerOptions {
  readonly shards: EventShards;
  readonly arrivals: ArrivalLog;
  readonly now: () => number;
  readonly registry: Registry;
  readonly log: Logger;
  readonly roundMs?: number | undefined;
}

export class ArrivalSequencer {
  readonly #options: SequencerOptions;
  readonly #rounds: Counter<"outcome">;
  #wake: (() => void) | undefined;
  #isRequested = false;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#rounds = new Counter({
      name: "tocsin_arrival_rounds_total",
      help: "How often the order of arrival was continued, by outcome",
      labelNames: ["outcome"],
      registers: [options.registry],
    });
  }

  /** Has the next round begin at once. */
  request(): void {
    this.#isRequested = true;
    this.#wake?.();
  }

  /** Runs rounds until the signal aborts or the lease is lost. Failures of the engines are tried again. */
  async run(fence: Fence, signal: AbortSignal): Promise<void> {
    const { shards, arrivals, log, roundMs = ROUND_MS } = this.#options;
    const unlisten = arrivals.listen("requested", () => this.request());
    let positions: Map<string, number> | undefined;
    let prunedAt = -Infinity;
    try {
      while (!signal.aborted) {
        this.#isRequested = false;
        try {
          positions ??= new Map((await arrivals.positions()).map((position) => [keyOf(position), position.next]));
          await this.#round(fence, positions);
          if (performance.now() - prunedAt > PRUNE_MS) {
            const beforeMs = this.#options.now() - KEPT_MS;
            await arrivals.prune(fence, beforeMs, await shards.allIncarnations());
            prunedAt = performance.now();
          }
        } catch (error) {
          if (error instanceof LeaseLost || signal.aborted) return;
          this.#rounds.inc({ outcome: "failed" });
          log.warn({ err: error }, "the order of arrival could not be continued; trying again");
          // The transaction may have been committed although its answer was lost.
          positions = undefined;
          await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
          continue;
        }
        if (!this.#isRequested) await this.#pause(roundMs, signal);
      }
    } finally {
      unlisten();
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    this.#wake = () => stop.abort();
    await sleep(ms, undefined, { signal: AbortSignal.any([signal, stop.signal]) }).catch(() => undefined);
    this.#wake = undefined;
  }

  async #round(fence: Fence, positions: Map<string, number>): Promise<void> {
    const { shards, arrivals, now } = this.#options;
    const progress = await shards.progress();
    const waiting = await this.#adoptRestored(fence, progress, positions);
    const behind = progress.filter(
      (shard) => shard.checkpoint >= (positions.get(keyOf(shard)) ?? 0) && !waiting.has(shard.index),
    );
    if (behind.length === 0) return;
    const atMs = now();
    await shards.refresh(behind.map(({ index }) => index));
    const ranges = await this.#rangesOf(behind, positions);
    const moved = behind.map((shard): ShardPosition => ({ ...shard, next: shard.checkpoint + 1 }));
    await arrivals.add(fence, atMs, ranges, moved);
    for (const position of moved) positions.set(keyOf(position), position.next);
    this.#rounds.inc({ outcome: "added" });
  }

  /**
   * A day that was restored from a snapshot has its old numbers under a new identity: without this, all its events would arrive
   * again. A day that was begun anew has numbers of its own. Returns the days that wait for the rest of their shards.
   */
  async #adoptRestored(
    fence: Fence,
    progress: readonly ShardProgress[],
    positions: Map<string, number>,
  ): Promise<ReadonlySet<string>> {
    const unknown = progress.filter((shard) => !positions.has(keyOf(shard)));
    const waiting = new Set<string>();
    if (unknown.length === 0) return waiting;
    const { arrivals, log } = this.#options;
    const stored = await arrivals.positions();
    for (const [index, found] of Map.groupBy(unknown, (shard) => shard.index)) {
      const { incarnation } = found[0]!;
      const former = stored.filter((position) => position.index === index && position.incarnation !== incarnation);
      for (const [from, earlier] of Map.groupBy(former, (position) => position.incarnation)) {
        if (!(await this.#isAsOld(index, from))) continue;
        const matches = earlier.map(({ shard, next }) => ({ next, now: found.find((one) => one.shard === shard) }));
        if (matches.some(({ now }) => now === undefined)) waiting.add(index);
        else if (matches.every(({ now, next }) => now!.checkpoint + 1 >= next)) {
          await arrivals.rename(fence, from, incarnation);
          for (const { shard, next } of earlier) positions.set(keyOf({ index, incarnation, shard }), next);
          log.info({ index }, "an index was restored; its events go on where they were");
          break;
        }
      }
    }
    return waiting;
  }

  /** Whether an index was there when numbers of its former incarnation arrived. */
  async #isAsOld(index: string, former: string): Promise<boolean> {
    const { shards, arrivals, now } = this.#options;
    const createdAt = await shards.createdAt(index);
    return createdAt !== undefined && createdAt <= ((await arrivals.lastOf(former)) ?? now() - KEPT_MS);
  }

  /** The numbers of each shard up to its last event: amendments have numbers too. */
  async #rangesOf(behind: readonly ShardProgress[], positions: ReadonlyMap<string, number>): Promise<ArrivalRange[]> {
    const searches = behind.map((on) => {
      const first = positions.get(keyOf(on)) ?? 0;
      const aggs = {
        unamended: {
          filter: unamended(first, on.checkpoint),
          aggs: { newest: { max: { field: "_seq_no" } } },
        },
        amended: { filter: amended(first, on.checkpoint), aggs: { newest: { max: { field: "first_seq" } } } },
      };
      return { on, body: { size: 0, track_total_hits: false, query: numbered(first, on.checkpoint), aggs } };
    });
    const answers = await this.#options.shards.searchMany(searches);
    return behind.flatMap((shard, nth) => {
      const found = Object.values(answers[nth]?.aggregations ?? {}) as { newest?: { value: number | null } }[];
      const numbers = found.flatMap(({ newest }) => newest?.value ?? []);
      const ranges: ArrivalRange[] = [];
      const last = Math.max(-1, ...numbers);
      const { index, incarnation } = shard;
      for (let first = positions.get(keyOf(shard)) ?? 0; first <= last; first += ROW_NUMBERS_MAX) {
        const end = Math.min(last, first + ROW_NUMBERS_MAX - 1);
        ranges.push({ index, incarnation, shard: shard.shard, first, last: end });
      }
      return ranges;
    });
  }
}
