import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { recentlyUsed } from "../lib/recently-used.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import { Turns } from "../lib/turns.ts";
import type { JsonObject } from "../model/event.ts";
import type { EventStore, Reputation, ReputationStore } from "../store/store.ts";
import { askAbuseIpdb, type AbuseIpdb, type Verdict } from "./abuse-ipdb.ts";
import type { EnrichmentFault, ReputationStatus } from "./status.ts";
import { Wanted, type DroppedKind } from "./wanted.ts";

// Reputations of addresses. Whoever asks is answered at once with what is known; what is not is asked for afterwards, one
// address at a time, within a budget, and added to the events and alerts that waited for it.

const KEPT_MS = DAY_MS;
const KNOWN_MAX = 50_000;
/** Events whose address is remembered, for alerts that are made of them. */
const EVENTS_REMEMBERED_MAX = 50_000;
/** Additions to events and alerts that wait for the store. */
const ADDING_MAX = 1000;
const TRIES_MAX = 5;
/** An address that was given up is not asked for again by every event that has it: each would cost a part of the day's budget. */
const GIVEN_UP_MAX = 10_000;
const REFUSED_MS = DAY_MS;
const GIVEN_UP_MS = 3_600_000;
/** After a first failure, a second one, and so on: the last for all that follow. */
const FAILURE_WAITS_MS = [1000, 5000, 30_000, 120_000, 600_000];
/** Where an answer says that it is enough, and not for how long. */
const LIMITED_MS = 3_600_000;
const KEY_REFUSED_MS = 3_600_000;
const PAUSE_MS_MAX = DAY_MS;
const TIMER_MS_MAX = 3_600_000;
const TIDY_MS = 3_600_000;
const AMEND_WAITS_MS = [100, 1000, 5000];

export interface ReputationsOptions {
  readonly service: AbuseIpdb;
  readonly perDay: number;
  readonly keeper: ReputationStore;
  readonly events: Pick<EventStore, "amend">;
  /** Adds to an alert that has no reputation yet. */
  readonly annotate: (alertId: string, report: JsonObject) => Promise<void>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

export class Reputations {
  readonly #options: ReputationsOptions;
  readonly #known = recentlyUsed<string, Reputation>(KNOWN_MAX);
  readonly #addressOfEvent = recentlyUsed<string, string>(EVENTS_REMEMBERED_MAX);
  /** Until when an address that was given up is left alone. */
  readonly #givenUp = recentlyUsed<string, number>(GIVEN_UP_MAX);
  readonly #wanted: Wanted;
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
  readonly #additions = new Turns();
  #tidiedAtMs: number;

  constructor(options: ReputationsOptions) {
    const { keeper, registry, now } = options;
    this.#options = options;
    this.#tidiedAtMs = now();
    const day = startOfDay(now());
    this.#budget = { day, used: keeper.lookups(day) };
    keeper.removeBefore(now() - KEPT_MS);
    // Oldest first, so that the newest are the last to be forgotten.
    for (const reputation of keeper.since(now() - KEPT_MS, KNOWN_MAX).reverse())
      this.#known.set(reputation.address, reputation);
    const registers = [registry];
    const dropped = new Counter({
      name: "tocsin_enrichment_reputation_dropped_total",
      help: "Addresses, events and alerts that a reputation was wanted for and that no longer wait for it, because there are too many or it cannot be had",
      labelNames: ["what"],
      registers,
    });
    this.#drop = (what, count) => dropped.inc({ what }, count);
    this.#wanted = new Wanted(this.#drop);
    this.#outcomes = new Counter({
      name: "tocsin_enrichment_reputation_lookups_total",
      help: "Addresses that were asked for at AbuseIPDB, by what came of it",
      labelNames: ["outcome"],
      registers,
    });
    this.#amended = new Counter({
      name: "tocsin_enrichment_amended_events_total",
      help: "Events that something was added to after they were stored",
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
    gauge("waiting", "Addresses whose reputation is wanted", () => this.#wanted.size);
    gauge("used_today", "Look-ups of this UTC day", () => this.#today().used);
  }

  /** What is known of an address, in its one spelling. */
  reportOf(address: string): JsonObject | undefined {
    const known = this.#known.get(address);
    return known && known.checkedAt > this.#options.now() - KEPT_MS ? known.report : undefined;
  }

  /** A stored event with this address has no reputation. */
  want(address: string, eventId: string): void {
    this.#addressOfEvent.set(eventId, address);
    const report = this.reportOf(address);
    // It came between the event's enrichment and its storing.
    if (report) void this.#add(report, [eventId], []);
    else if ((this.#givenUp.get(address) ?? 0) > this.#options.now()) this.#drop("event", 1);
    else {
      this.#wanted.addEvent(address, eventId);
      this.#run();
    }
  }

  /** An alert without a reputation was made by this event; where that has no address, those of the others are as good. */
  alertMade(alertId: string, completedBy: string | null, others: readonly string[]): void {
    const own = completedBy === null ? undefined : this.#addressOfEvent.get(completedBy);
    const addresses = own === undefined ? new Set(others.flatMap((id) => this.#addressOfEvent.get(id) ?? [])) : [own];
    for (const address of addresses) {
      const report = this.reportOf(address);
      if (report) void this.#add(report, [], [alertId]);
      else this.#wanted.addAlert(address, alertId);
    }
  }

  get status(): ReputationStatus {
    const now = this.#options.now();
    return {
      perDay: this.#options.perDay,
      usedToday: this.#today().used,
      waiting: this.#wanted.size,
      known: this.#known.size,
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

  /** The address to ask for now; where there must be a wait, a timer goes on after it. */
  #next(): string | undefined {
    if (this.#stop.signal.aborted) return undefined;
    const address = this.#wanted.first();
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
    const { service, keeper, now } = this.#options;
    const known = this.reportOf(address);
    if (known) return this.#answer(address, known);
    const budget = this.#today();
    budget.used++;
    this.#keep(() => keeper.saveLookups(budget.day, budget.used));
    const verdict = await askAbuseIpdb(service, address, now(), this.#stop.signal);
    if (this.#stop.signal.aborted) return;
    this.#outcomes.inc({ outcome: verdict.kind });
    if (verdict.kind !== "report") return this.#fail(address, verdict);
    this.#failures = 0;
    this.#fault = null;
    if (verdict.isLast) this.#pause(verdict.untilMs ?? budget.day + DAY_MS);
    const reputation = { address, checkedAt: now(), report: verdict.report };
    this.#known.set(address, reputation);
    this.#keep(() => keeper.put(reputation));
    this.#tidy();
    await this.#answer(address, verdict.report);
  }

  async #answer(address: string, report: JsonObject): Promise<void> {
    const waiting = this.#wanted.take(address);
    if (waiting) await this.#add(report, [...waiting.events], [...waiting.alerts]);
  }

  #fail(address: string, verdict: Exclude<Verdict, { kind: "report" }>): void {
    const now = this.#options.now();
    const message = verdict.kind === "limited" ? "AbuseIPDB says that it is enough for now" : verdict.message;
    if (this.#fault?.message !== message) this.#options.log.warn({ reason: message }, "a reputation could not be had");
    this.#fault = { message, atMs: now };
    switch (verdict.kind) {
      case "limited":
        return this.#pause(verdict.untilMs ?? now + LIMITED_MS);
      case "key_refused":
        return this.#pause(now + KEY_REFUSED_MS);
      case "address_refused":
        return this.#giveUp(address, REFUSED_MS);
      case "failed": {
        const waits = FAILURE_WAITS_MS;
        this.#pause(now + waits[Math.min(this.#failures++, waits.length - 1)]!);
        if (this.#wanted.fail(address) >= TRIES_MAX) this.#giveUp(address, GIVEN_UP_MS);
      }
    }
  }

  #giveUp(address: string, forMs: number): void {
    this.#givenUp.set(address, this.#options.now() + forMs);
    this.#wanted.giveUp(address);
  }

  #pause(untilMs: number): void {
    const now = this.#options.now();
    this.#pausedUntilMs = Math.min(Math.max(untilMs, now + FAILURE_WAITS_MS[0]!), now + PAUSE_MS_MAX);
  }

  #add(report: JsonObject, eventIds: readonly string[], alertIds: readonly string[]): Promise<void> {
    if (this.#additions.waiting >= ADDING_MAX) {
      this.#drop("event", eventIds.length);
      this.#drop("alert", alertIds.length);
      return this.#additions.settled();
    }
    return this.#additions.take(() => this.#addNow(report, eventIds, alertIds));
  }

  async #addNow(report: JsonObject, eventIds: readonly string[], alertIds: readonly string[]): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const amendments = eventIds.map((id) => ({ id, enrichment: { abuse_ipdb: report } }));
    if (amendments.length > 0 && (await this.#untilDone(() => this.#options.events.amend(amendments))))
      this.#amended.inc(amendments.length);
    for (const id of alertIds) await this.#untilDone(() => this.#options.annotate(id, report));
  }

  /** A store that is busy is asked again, a few times. False: it was in vain. */
  async #untilDone(work: () => Promise<void>): Promise<boolean> {
    for (const waitMs of [...AMEND_WAITS_MS, null]) {
      try {
        await work();
        return true;
      } catch (error) {
        if (waitMs === null || this.#stop.signal.aborted) {
          this.#outcomes.inc({ outcome: "not_stored" });
          this.#options.log.warn({ err: error }, "a reputation could not be added to what waited for it");
          return false;
        }
        // A stop ends the wait, and the next try is the last.
        await delay(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
    return false;
  }

  /** What cannot be kept is known all the same, until the next start. */
  #keep(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#outcomes.inc({ outcome: "not_kept" });
      this.#options.log.warn({ err: error }, "a reputation could not be kept");
    }
  }

  #tidy(): void {
    const now = this.#options.now();
    if (now - this.#tidiedAtMs < TIDY_MS) return;
    this.#tidiedAtMs = now;
    this.#keep(() => this.#options.keeper.removeBefore(now - KEPT_MS));
  }

  /** Nobody is asked before then: it was asked for, or the budget of the day is used up. */
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
