import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { idMaker, timeOfId } from "../lib/id.ts";
import type { ChannelHealth } from "../model/channel-status.ts";
import { CHANNELS, type Channel } from "../model/rule.ts";
import type { NotificationStore } from "../store/ports/notification-store.ts";
import type { Store } from "../store/ports/store.ts";
import { ChannelQueue, type QueueOptions } from "./channel-queue.ts";
import type { ConfiguredChannels } from "./channel.ts";
import type { AlertLinks } from "./message.ts";
import { PACE, type DeliveryPace } from "./schedule.ts";

// Delivers the notifications queued in the store: one message at a time per channel, all channels in parallel.

export interface NotifierOptions {
  readonly store: Pick<Store, "notifications" | "alerts">;
  readonly channels: ConfiguredChannels;
  readonly perMinuteMax: number;
  readonly retryMs: number;
  readonly linksTo: (alertId: string) => AlertLinks;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly steadyNow?: () => number;
  readonly random?: () => number;
  readonly pace?: Partial<DeliveryPace>;
}

/** The links to an alert at the base URL of the service. Without a console, people also get the one to the API. */
export function alertLinks(base: string, alertId: string, { hasConsole }: { hasConsole: boolean }): AlertLinks {
  const root = base.replace(/\/+$/, "");
  const apiUrl = `${root}/v1/alerts/${alertId}`;
  return { url: hasConsole ? `${root}/alerts?alert=${alertId}` : apiUrl, apiUrl };
}

/** Of the configured channels. */
export type ChannelHealths = Partial<Record<Channel, ChannelHealth>>;

export interface Notifier {
  readonly healths: ChannelHealths;
  /** Waits briefly for the attempts in flight. One that takes too long is repeated at the next start. */
  close(): Promise<void>;
}

export async function openNotifier(options: NotifierOptions): Promise<Notifier> {
  const { store, channels, registry, log, perMinuteMax, now = Date.now, random = Math.random } = options;
  const { notifications } = store;
  const outcomes = new Counter({
    name: "tocsin_notifications_total",
    help: "Notifications by outcome of an attempt: sent, repeated, delayed, failed",
    labelNames: ["channel", "outcome"],
    registers: [registry],
  });
  new Gauge({
    name: "tocsin_notifications",
    help: "Stored notifications by status",
    labelNames: ["channel", "status"],
    registers: [registry],
    async collect() {
      this.reset();
      for (const { channel, status, count } of await notifications.counts()) this.set({ channel, status }, count);
    },
  });
  const interrupted = await notifications.recover(now());
  if (interrupted > 0) log.warn({ messages: interrupted }, "messages in flight when the service ended are sent again");
  const queueOptions: Omit<QueueOptions, "name" | "channel"> = {
    store,
    pace: { ...PACE, perMinuteMax, ...options.pace },
    retryMs: options.retryMs,
    linksTo: options.linksTo,
    newDeliveryId: idMaker("dlv_", now),
    newEntryId: idMaker("tln_", now),
    count: (name, outcome, count) => outcomes.inc({ channel: name, outcome }, count),
    log,
    now,
    steadyNow: options.steadyNow ?? (() => performance.now()),
    random,
  };
  const queues = new Map<Channel, ChannelQueue>();
  for (const name of CHANNELS) {
    const channel = channels.get(name);
    const queue = new ChannelQueue({ ...queueOptions, name, channel: channel ?? absent(name) });
    if (channel) queues.set(name, queue);
    else await queue.giveUp();
  }
  const names = [...queues.keys()];
  const recent = await Promise.all(names.map((name) => recentAttempts(notifications, name, now())));
  // From here on nothing fails: a queue that has started must be closed.
  const stopListening = notifications.onQueued(() => {
    for (const queue of queues.values()) queue.wake();
  });
  for (const [nth, queue] of [...queues.values()].entries()) queue.start(recent[nth]!);
  return {
    get healths() {
      return Object.fromEntries(Array.from(queues, ([name, queue]) => [name, queue.health]));
    },
    close: async () => {
      stopListening();
      await Promise.all(Array.from(queues.values(), (queue) => queue.close()));
    },
  };
}

const MINUTE_MS = 60_000;

/** The attempts of the last minute, as far as the store knows: the limit per minute holds across nodes and restarts. */
async function recentAttempts(notifications: NotificationStore, channel: Channel, nowMs: number): Promise<number[]> {
  const deliveries = await notifications.recentDeliveries(channel, nowMs - MINUTE_MS);
  return deliveries
    .map(({ deliveryId, settledAt }) => settledAt ?? timeOfId(deliveryId))
    .filter((at) => at > nowMs - MINUTE_MS && at <= nowMs)
    .sort((a, b) => a - b);
}

/** A channel that is no longer configured refuses its queued notifications. */
function absent(name: Channel) {
  const error = `the channel ${name} is not configured`;
  return { send: () => Promise.resolve({ kind: "refused" as const, error }) };
}
