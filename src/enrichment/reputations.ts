import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { createLruCache } from "../lib/lru.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { unreachable } from "../lib/unreachable.ts";
import type { JsonObject } from "../model/event.ts";
import type { EventEngine } from "../store/ports/event-engine.ts";
import type { Reputation, ReputationStore } from "../store/ports/reputation-store.ts";
import { queryAbuseIpdb, type AbuseIpdbService, type AbuseIpdbResult } from "./abuse-ipdb.ts";
import type { EnrichmentFault, ReputationStatus } from "./enrichment-status.ts";
import { LookupQueue, type DroppedKind } from "./lookup-queue.ts";

// Reputations of addresses. A request is answered at once from the cache; a missing reputation is looked up in the background, one
// address at a time within a daily budget, and added to the events and alerts that wait for it.

const CACHE_MS = DAY_MS;
const CACHED_MAX = 50_000;
/** Events whose address is kept, for alerts that are created from them. */
const EVENT_ADDRESSES_MAX = 50_000;
/** Additions to events and alerts that are pending in the store. */
const PENDING_ADDITIONS_MAX = 1000;
const TRIES_MAX = 5;
/** Addresses skipped after failures, so that events with them do not use up the daily budget. */
const SKIPPED_MAX = 10_000;
const REFUSED_SKIP_MS = DAY_MS;
const FAILED_SKIP_MS = 3_600_000;
/** Pauses after consecutive failures; the last one repeats. */
const FAILURE_PAUSES_MS = [1000, 5000, 30_000, 120_000, 600_000];
/** The pause after a rate limit without a time. */
const LIMITED_PAUSE_MS = 3_600_000;
const KEY_REFUSED_PAUSE_MS = 3_600_000;
const PAUSE_MS_MAX = DAY_MS;
const TIMER_MS_MAX = 3_600_000;
const REMOVE_EXPIRED_MS = 3_600_000;
const ADDITION_RETRIES_MS = [100, 1000, 5000];

export interface ReputationsOptions {
  readonly service: AbuseIpdbService;
  readonly perDay: number;
  readonly reputationStore: ReputationStore;
  readonly events: Pick<EventEngine, "amend" | "get">;
  /** Adds a report to an alert that has none yet. */
  readonly annotate: (alertId: string, report: JsonObject) => Promise<void>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

interface StoredReputations {
  readonly budget: { readonly day: number; readonly used: number };
  /** Newest first. */
  readonly cached: readonly Reputation[];
}

/** Continues with the stored reputations and today's budget. */
export async function openReputations(options: ReputationsOptions): Promise<Reputations> {
  const { reputationStore, now } = options;
  const day = startOfDay(now());
  const used = await reputationStore.lookups(day);
  await reputationStore.removeBefore(now() - CACHE_MS);
  const cached = await reputationStore.since(now() - CACHE_MS, CACHED_MAX);
  return new Reputations(options, { budget: { day, used }, cached });
}

export class Reputations {
  readonly #options: ReputationsOptions;
  readonly #cache = createLruCache<string, Reputation>(CACHED_MAX);
  readonly #addressOfEvent = createLruCache<string, string>(EVENT_ADDRESSES_MAX);
  /** The end of the skip of each skipped address. */
  readonly #skippedUntilMs = createLruCache<string, number>(SKIPPED_MAX);
  readonly #queue: LookupQueue;
  readonly #drop: (what: DroppedKind, count: number) => void;
  readonly #outcomes: Counter<"outcome">;
  readonly #amended: Counter;
  readonly #stop = new AbortController();
  #budget: { readonly day: number; used: number };
  #pausedUntilMs = 0;
  #failures = 0;
  #fault: EnrichmentFault | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  #lookingUp: Promise<void> = Promise.resolve();
  readonly #additions = new SerialQueue();
  #expiredRemovedAtMs: number;

  constructor(options: ReputationsOptions, { budget, cached }: StoredReputations) {
    const { registry, now } = options;
    this.#options = options;
    this.#expiredRemovedAtMs = now();
    this.#budget = { ...budget };
    // Oldest first, so that the newest are evicted last.
    for (const reputation of cached.toReversed()) this.#cache.set(reputation.address, reputation);
    const registers = [registry];
    const dropped = new Counter({
      name: "tocsin_enrichment_reputation_dropped_total",
      help: "Addresses, events and alerts dropped without a reputation, because there were too many or the lookup failed",
      labelNames: ["what"],
      registers,
    });
    this.#drop = (what, count) => dropped.inc({ what }, count);
    this.#queue = new LookupQueue(this.#drop);
    this.#outcomes = new Counter({
      name: "tocsin_enrichment_reputation_lookups_total",
      help: "AbuseIPDB lookups, by outcome",
      labelNames: ["outcome"],
      registers,
    });
    this.#amended = new Counter({
      name: "tocsin_enrichment_amended_events_total",
      help: "Events amended after they were stored",
      registers,
    });
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name: `tocsin_enrichment_reputation_${name}`,
        help,
        registers,
        collect() {
          this.set(value());
        },
      });
    gauge("waiting", "Addresses with a pending lookup", () => this.#queue.size);
    gauge("used_today", "Lookups of this UTC day", () => this.#today().used);
  }

  /** The cached report of a canonical address. */
  reportOf(address: string): JsonObject | undefined {
    const known = this.#cache.get(address);
    return known && known.checkedAt > this.#options.now() - CACHE_MS ? known.report : undefined;
  }

  /** Requests the reputation for a stored event without one. */
  request(address: string, eventId: string): void {
    this.#addressOfEvent.set(eventId, address);
    const report = this.reportOf(address);
    // The report arrived between the enrichment and the storing of the event.
    if (report) void this.#enqueueAddition(report, [eventId], []);
    else if ((this.#skippedUntilMs.get(address) ?? 0) > this.#options.now()) this.#drop("event", 1);
    else {
      this.#queue.addEvent(address, eventId);
      this.#run();
    }
  }

  /** True if the event, or its address, has come by this node. */
  hasSeen(eventId: string): boolean {
    return this.#addressOfEvent.has(eventId);
  }

  /** Requests the reputation for an alert: for the address of the completing event, or else for those of the other events. */
  alertMade(alertId: string, completedBy: string | null, others: readonly string[]): void {
    const own = completedBy === null ? undefined : this.#addressOfEvent.get(completedBy);
    const addresses = own === undefined ? new Set(others.flatMap((id) => this.#addressOfEvent.get(id) ?? [])) : [own];
    for (const address of addresses) {
      const report = this.reportOf(address);
      if (report) void this.#enqueueAddition(report, [], [alertId]);
      else this.#queue.addAlert(address, alertId);
    }
  }

  get status(): ReputationStatus {
    const now = this.#options.now();
    return {
      perDay: this.#options.perDay,
      usedToday: this.#today().used,
      waiting: this.#queue.size,
      known: this.#cache.size,
      pausedUntilMs: this.#untilMs() > now ? this.#untilMs() : null,
      fault: this.#fault,
    };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#lookingUp;
    await this.#additions.settled();
  }

  #run(): void {
    if (this.#isRunning || this.#stop.signal.aborted) return;
    this.#isRunning = true;
    this.#lookingUp = this.#lookUpAll();
  }

  async #lookUpAll(): Promise<void> {
    for (let address = this.#next(); address !== undefined; address = this.#next()) await this.#lookUp(address);
    this.#isRunning = false;
  }

  /** The address to look up now; during a pause, a timer resumes the lookups. */
  #next(): string | undefined {
    if (this.#stop.signal.aborted) return undefined;
    const address = this.#queue.first();
    if (address === undefined) return undefined;
    const now = this.#options.now();
    const untilMs = this.#untilMs();
    if (untilMs <= now) return address;
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#run();
      },
      Math.min(untilMs - now, TIMER_MS_MAX),
    ).unref();
    return undefined;
  }

  async #lookUp(address: string): Promise<void> {
    const { service, reputationStore, now } = this.#options;
    const known = this.reportOf(address) ?? (await this.#reportOfOthers(address));
    if (known) return this.#answer(address, known);
    const budget = this.#today();
    if (!(await this.#reserve(budget))) return;
    const result = await queryAbuseIpdb(service, address, now(), this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    this.#outcomes.inc({ outcome: result.kind });
    if (result.kind !== "report") return this.#fail(address, result);
    this.#failures = 0;
    this.#fault = null;
    if (result.isLast) this.#pause(result.untilMs ?? budget.day + DAY_MS);
    const reputation = { address, checkedAt: now(), report: result.report };
    this.#cache.set(address, reputation);
    await this.#tryPersist(() => reputationStore.put(reputation));
    await this.#removeExpired();
    await this.#answer(address, result.report);
  }

  /** What another node has looked up. */
  async #reportOfOthers(address: string): Promise<JsonObject | undefined> {
    const { reputationStore, now } = this.#options;
    let found: Reputation | undefined;
    await this.#tryPersist(async () => {
      found = await reputationStore.shared?.find(address, now() - CACHE_MS);
    });
    if (found) this.#cache.set(address, found);
    return found?.report;
  }

  /** Counts a look-up; false if other nodes have used up the budget of the day. */
  async #reserve(budget: { readonly day: number; used: number }): Promise<boolean> {
    const { reputationStore, perDay } = this.#options;
    budget.used++;
    let isWithin = true;
    await this.#tryPersist(async () => {
      if (!reputationStore.shared) return reputationStore.saveLookups(budget.day, budget.used);
      const used = await reputationStore.shared.reserve(budget.day, perDay);
      isWithin = used !== undefined;
      budget.used = used ?? perDay;
    });
    return isWithin;
  }

  async #answer(address: string, report: JsonObject): Promise<void> {
    const lookup = this.#queue.take(address);
    if (lookup) await this.#enqueueAddition(report, [...lookup.events], [...lookup.alerts]);
  }

  #fail(address: string, result: Exclude<AbuseIpdbResult, { kind: "report" }>): void {
    const now = this.#options.now();
    const message = result.kind === "limited" ? "AbuseIPDB rate limit reached" : result.message;
    if (this.#fault?.message !== message) this.#options.log.warn({ reason: message }, "reputation lookup failed");
    this.#fault = { message, atMs: now };
    switch (result.kind) {
      case "limited":
        return this.#pause(result.untilMs ?? now + LIMITED_PAUSE_MS);
      case "key_refused":
        return this.#pause(now + KEY_REFUSED_PAUSE_MS);
      case "address_refused":
        return this.#skip(address, REFUSED_SKIP_MS);
      case "failed": {
        const pauses = FAILURE_PAUSES_MS;
        this.#pause(now + pauses[Math.min(this.#failures++, pauses.length - 1)]!);
        if (this.#queue.fail(address) >= TRIES_MAX) this.#skip(address, FAILED_SKIP_MS);
        return;
      }
      default:
        return unreachable(result);
    }
  }

  #skip(address: string, forMs: number): void {
    this.#skippedUntilMs.set(address, this.#options.now() + forMs);
    this.#queue.drop(address);
  }

  #pause(untilMs: number): void {
    const now = this.#options.now();
    this.#pausedUntilMs = Math.min(Math.max(untilMs, now + FAILURE_PAUSES_MS[0]!), now + PAUSE_MS_MAX);
  }

  #enqueueAddition(report: JsonObject, eventIds: readonly string[], alertIds: readonly string[]): Promise<void> {
    if (this.#additions.waiting >= PENDING_ADDITIONS_MAX) {
      this.#drop("event", eventIds.length);
      this.#drop("alert", alertIds.length);
      return this.#additions.settled();
    }
    return this.#additions.take(() => this.#addReport(report, eventIds, alertIds));
  }

  async #addReport(report: JsonObject, eventIds: readonly string[], alertIds: readonly string[]): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const amendments = eventIds.map((id) => ({ id, enrichment: { abuse_ipdb: report } }));
    if (amendments.length > 0 && (await this.#withRetries(() => this.#options.events.amend(amendments))))
      this.#amended.inc(amendments.length);
    for (const id of alertIds) await this.#withRetries(() => this.#options.annotate(id, report));
  }

  /** Retries a few times, since the store may be busy. Returns false if all attempts failed. */
  async #withRetries(work: () => Promise<void>): Promise<boolean> {
    for (const waitMs of [...ADDITION_RETRIES_MS, null]) {
      try {
        await work();
        return true;
      } catch (error) {
        if (waitMs === null || this.#stop.signal.aborted) {
          this.#outcomes.inc({ outcome: "not_stored" });
          this.#options.log.warn({ err: error }, "adding a reputation to events or alerts failed");
          return false;
        }
        // A stop ends the wait, and the next attempt is the last.
        await delay(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
    return false;
  }

  /** Persists if possible; otherwise the value stays in memory until the next start. */
  async #tryPersist(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#outcomes.inc({ outcome: "not_kept" });
      this.#options.log.warn({ err: error }, "persisting a reputation failed");
    }
  }

  async #removeExpired(): Promise<void> {
    const now = this.#options.now();
    if (now - this.#expiredRemovedAtMs < REMOVE_EXPIRED_MS) return;
    this.#expiredRemovedAtMs = now;
    await this.#tryPersist(() => this.#options.reputationStore.removeBefore(now - CACHE_MS));
  }

  /** The end of the current pause, which a failure, a rate limit or the daily budget causes. */
  #untilMs(): number {
    const { day, used } = this.#today();
    return used >= this.#options.perDay ? Math.max(day + DAY_MS, this.#pausedUntilMs) : this.#pausedUntilMs;
  }

  #today(): { readonly day: number; used: number } {
    const day = startOfDay(this.#options.now());
    if (day !== this.#budget.day) this.#budget = { day, used: 0 };
    return this.#budget;
  }
}
