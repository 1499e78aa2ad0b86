import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { SYSTEM, type NotifiedOutcome, type TimelineEntry } from "../model/alert.ts";
import type { ChannelHealth } from "../model/channel-status.ts";
import type { Notification } from "../model/notification.ts";
import type { Channel } from "../model/rule.ts";
import type { NewTimelineEntry } from "../store/ports/alert-store.ts";
import type { Settlement } from "../store/ports/notification-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { sendWithin, type ChannelSender, type SendOutcome } from "./channel.ts";
import { closingAt, digestOf, type MessageItem, type AlertLinks } from "./message.ts";
import { nextQueueStep, backoffMs, type DeliveryPace, type ChannelHistory } from "./schedule.ts";

/** Limit for the attempt in flight once the service stops. */
const CLOSE_MS_MAX = 4000;
/** Limit for one attempt, besides the channel's own timeouts: a slow peer must not block the queue. */
const ATTEMPT_MS_MAX = 60_000;
const STORE_WAIT_MS = 1000;
/** Alerts of one message whose timelines are read for their resolution. No channel shows more. */
const CLOSINGS_MAX = 100;
/** Limits a sleep, which a clock set back would prolong. */
const SLEEP_MS_MAX = 60_000;

export interface QueueOptions {
  readonly name: Channel;
  readonly channel: ChannelSender;
  readonly store: Pick<Store, "notifications" | "alerts">;
  readonly pace: DeliveryPace;
  /** How long a message is retried. */
  readonly retryMs: number;
  readonly linksTo: (alertId: string) => AlertLinks;
  readonly newDeliveryId: () => string;
  readonly newEntryId: () => string;
  readonly count: (name: Channel, outcome: NotifiedOutcome, count: number) => void;
  readonly log: Logger;
  readonly now: () => number;
  /** A monotonic clock, for times that are not stored. */
  readonly steadyNow: () => number;
  readonly random: () => number;
}

/** Delivers the queued notifications of one channel, one message at a time. */
export class ChannelQueue {
  readonly #options: QueueOptions;
  readonly #stop = new AbortController();
  readonly #abort = new AbortController();
  #past: ChannelHistory = { attemptsAt: [], pausedUntil: 0, lastWasNew: false };
  #failuresInARow = 0;
  #lastSentAt: number | null = null;
  #lastError: ChannelHealth["lastError"] = null;
  #woken = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** `attemptsAt`: the attempts of the last minute, by whoever had the queue before, oldest first. */
  start(attemptsAt: readonly number[]): void {
    const { now, steadyNow, pace } = this.#options;
    const sinceThen = steadyNow() - now();
    this.#past = { ...this.#past, attemptsAt: attemptsAt.map((at) => at + sinceThen).slice(-pace.perMinuteMax) };
    this.#running = this.#run();
  }

  /** A notification was queued. */
  wake(): void {
    this.#woken.resolve();
  }

  get health(): ChannelHealth {
    const { now, steadyNow } = this.#options;
    const pauseMs = this.#past.pausedUntil - steadyNow();
    const pausedUntil = pauseMs > 0 ? Math.round(now() + pauseMs) : null;
    return { lastSentAt: this.#lastSentAt, lastError: this.#lastError, pausedUntil };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.wake();
    const timer = setTimeout(() => this.#abort.abort(), CLOSE_MS_MAX);
    await this.#running;
    clearTimeout(timer);
  }

  /** Attempts everything that is queued once, due or not. */
  async giveUp(): Promise<void> {
    const { store, name, now } = this.#options;
    for (;;) {
      const { freshSince, retry } = await store.notifications.backlog(name, now(), now());
      if (freshSince !== null) await this.#begin();
      else if (retry) await this.#again(retry.deliveryId);
      else return;
    }
  }

  async #run(): Promise<void> {
    const { log, name } = this.#options;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        if (this.#stop.signal.aborted) return;
        log.warn({ err: error, channel: name }, "store unavailable; notifications are delayed");
        await this.#rest(STORE_WAIT_MS);
      }
    }
  }

  async #step(): Promise<void> {
    const { store, name, pace, now, steadyNow } = this.#options;
    // Before the query, so that a notification queued after it still wakes the sleep.
    this.#woken = Promise.withResolvers<void>();
    const at = now();
    const backlog = await store.notifications.backlog(name, at - pace.digestMs, at);
    const step = nextQueueStep(backlog, this.#past, pace, at, steadyNow());
    if (step.kind === "begin") return this.#begin();
    if (step.kind === "again") return this.#again(step.deliveryId);
    await this.#rest(step.until === null ? SLEEP_MS_MAX : Math.max(1, step.until - at));
  }

  async #rest(ms: number): Promise<void> {
    const timer = new AbortController();
    const signal = AbortSignal.any([timer.signal, this.#stop.signal]);
    const slept = sleep(Math.min(ms, SLEEP_MS_MAX), undefined, { signal }).catch(() => undefined);
    await Promise.race([slept, this.#woken.promise]);
    timer.abort();
  }

  async #begin(): Promise<void> {
    const { store, name, channel, newDeliveryId, pace } = this.#options;
    const deliveryId = newDeliveryId();
    const messageMax = Math.min(pace.messageMax, channel.messageMax ?? Infinity);
    this.#past = { ...this.#past, lastWasNew: true };
    await this.#deliver(deliveryId, await store.notifications.begin(name, deliveryId, messageMax));
  }

  async #again(deliveryId: string): Promise<void> {
    this.#past = { ...this.#past, lastWasNew: false };
    await this.#deliver(deliveryId, await this.#options.store.notifications.beginAgain(deliveryId));
  }

  async #deliver(deliveryId: string, notifications: readonly Notification[]): Promise<void> {
    if (notifications.length === 0) return;
    const { pace, steadyNow, name, log } = this.#options;
    const attemptsAt = [...this.#past.attemptsAt, steadyNow()].slice(-pace.perMinuteMax);
    this.#past = { ...this.#past, attemptsAt };
    const outcome = await this.#send(deliveryId, notifications);
    const settlement = this.#settlementOf(outcome, notifications);
    if (settlement.status === "sent") this.#lastSentAt = this.#options.now();
    if (settlement.error !== null) {
      this.#lastError = { message: settlement.error, at: this.#options.now() };
      const line = { channel: name, deliveryId, alerts: notifications.length, reason: settlement.error };
      log.warn(line, settlement.status === "dead" ? "message given up" : "message not delivered");
    }
    await this.#settle(deliveryId, settlement, notifications);
  }

  async #send(deliveryId: string, notifications: readonly Notification[]): Promise<SendOutcome> {
    const { channel, now, log, name } = this.#options;
    const read = () => this.#itemsOf(notifications);
    const items = await this.#untilDone(read, deliveryId, "alerts of a message cannot be read yet", this.#stop);
    if (!items) return { kind: "failed", error: "the service stopped before the attempt", mayHaveArrived: false };
    const isRepeat = notifications.some((notification) => notification.isRepeat);
    const untold = notifications[0]!.untold;
    try {
      return await sendWithin(ATTEMPT_MS_MAX, this.#abort.signal, (signal) =>
        channel.send({ deliveryId, isRepeat, at: now(), items, ...(untold && { untold }) }, signal),
      );
    } catch (error) {
      // A bug that one message triggers must not block the others.
      log.error({ err: error, channel: name, deliveryId }, "message could not be built");
      return { kind: "failed", error: "internal error; see the log of the service", mayHaveArrived: true };
    }
  }

  async #itemsOf(notifications: readonly Notification[]): Promise<MessageItem[]> {
    const { store, linksTo } = this.#options;
    const alerts = await store.alerts.getMany(notifications.map(({ alertId }) => alertId));
    return this.#withClosings(
      notifications.map(({ reason, alertId, createdAt }, i) => {
        // Retention keeps alerts with queued notifications.
        return { reason, alert: alerts[i]!, ...linksTo(alertId), createdAt };
      }),
    );
  }

  /** Adds the resolution at the time of the notification, from the timeline. */
  async #withClosings(items: readonly (MessageItem & { readonly createdAt: number })[]): Promise<MessageItem[]> {
    const { alerts } = this.#options.store;
    const shown = new Set<MessageItem>(digestOf(items, CLOSINGS_MAX).shown);
    const completed: MessageItem[] = [];
    for (const item of items) {
      const { reason, alert, createdAt } = item;
      const found = reason === "resolved" && shown.has(item) ? await alerts.withTimeline(alert.id) : undefined;
      completed.push({ ...item, closing: found && closingAt(found.timeline, createdAt) });
    }
    return completed;
  }

  #settlementOf(outcome: SendOutcome, notifications: readonly Notification[]): Settlement {
    const { now, steadyNow, random, retryMs } = this.#options;
    const { error = null } = outcome;
    if (outcome.kind === "sent") {
      this.#failuresInARow = 0;
      return { status: "sent", error };
    }
    if (outcome.kind === "refused") return { status: "dead", error: outcome.error };
    const at = now();
    const asked = outcome.retryAfterMs ?? 0;
    if (outcome.kind === "failed") {
      this.#failuresInARow++;
      const pausedUntil = steadyNow() + Math.max(asked, backoffMs(this.#failuresInARow, random()));
      this.#past = { ...this.#past, pausedUntil };
    } else {
      // The channel works: one recipient must not delay the others, unless the peer asks for a pause.
      this.#failuresInARow = 0;
      this.#past = { ...this.#past, pausedUntil: steadyNow() + asked };
    }
    const attempts = Math.max(...notifications.map((notification) => notification.attempts));
    const queuedAt = Math.min(...notifications.map((notification) => notification.queuedAt));
    const dueAt = at + Math.max(asked, backoffMs(attempts, random()));
    if (dueAt - queuedAt > retryMs) {
      return { status: "dead", error: `given up after ${attempts} attempts: ${outcome.error}` };
    }
    const waiting = { status: "waiting", error: outcome.error, dueAt } as const;
    if (outcome.kind === "partly") return { ...waiting, isRepeat: false, untold: outcome.untold };
    return { ...waiting, isRepeat: outcome.mayHaveArrived };
  }

  /** Records the outcome, however long the store takes: a delivered message must not be sent again. */
  async #settle(deliveryId: string, settlement: Settlement, notifications: readonly Notification[]): Promise<void> {
    const { store, now, name, count } = this.#options;
    const timeline = notifications.flatMap((notification) => this.#entryOf(notification, settlement));
    const settle = async () => {
      await store.notifications.settle(deliveryId, settlement, now(), timeline);
      return true;
    };
    const trouble = "outcome of a message cannot be stored yet";
    if (!(await this.#untilDone(settle, deliveryId, trouble, this.#abort))) return;
    for (const notification of notifications) count(name, outcomeOf(notification, settlement), 1);
  }

  /** Retries until the store answers, so that no message stays in `sending`. Undefined if aborted. */
  async #untilDone<Value>(
    ask: () => Promise<Value>,
    deliveryId: string,
    trouble: string,
    { signal }: AbortController,
  ): Promise<Value | undefined> {
    const { log, name } = this.#options;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        log.warn({ err: error, channel: name, deliveryId }, trouble);
        if (signal.aborted) return undefined;
        await sleep(STORE_WAIT_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** A retried message gets a timeline entry for its first failure only. The notification has the later ones. */
  #entryOf(notification: Notification, settlement: Settlement): NewTimelineEntry[] {
    if (settlement.status === "waiting" && notification.attempts > 1) return [];
    const { now, newEntryId, name } = this.#options;
    const entry: TimelineEntry = {
      id: newEntryId(),
      at: now(),
      actor: SYSTEM,
      kind: "notified",
      channel: name,
      outcome: outcomeOf(notification, settlement),
      reason: notification.reason,
      ...(settlement.error !== null && { error: settlement.error }),
    };
    return [{ alertId: notification.alertId, entry }];
  }
}

function outcomeOf({ isRepeat }: Notification, { status }: Settlement): NotifiedOutcome {
  if (status === "sent") return isRepeat ? "repeated" : "sent";
  return status === "dead" ? "failed" : "delayed";
}
