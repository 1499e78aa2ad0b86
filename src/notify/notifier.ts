import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { idMaker } from "../lib/id.ts";
import { CHANNELS, type Channel as ChannelName } from "../model/rule.ts";
import type { Store } from "../store/store.ts";
import { ChannelQueue, type QueueOptions } from "./channel-queue.ts";
import type { Channels } from "./channel.ts";
import { PACE, type Pace } from "./schedule.ts";

// Delivers what is in line in the store: one message at a time on each channel, the channels beside each other.

export interface NotifierOptions {
  readonly store: Pick<Store, "notifications" | "alerts">;
  readonly channels: Channels;
  readonly perMinuteMax: number;
  readonly retryMs: number;
  /** Where people read about an alert. */
  readonly urlOf: (alertId: string) => string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly steadyNow?: () => number;
  readonly random?: () => number;
  readonly pace?: Partial<Pace>;
}

/** Where the API has an alert: the one page about it that there is. */
export function alertUrl(base: string, alertId: string): string {
  return `${base.replace(/\/+$/, "")}/v1/alerts/${alertId}`;
}

export interface Notifier {
  /** An attempt that is under way may still end; one that takes too long is made again at the next start. */
  close(): Promise<void>;
}

export async function openNotifier(options: NotifierOptions): Promise<Notifier> {
  const { store, channels, registry, log, perMinuteMax, now = Date.now, random = Math.random } = options;
  const { notifications } = store;
  const outcomes = new Counter({
    name: "tocsin_notifications_total",
    help: "Notifications by what has become of them at an attempt: sent, repeated, delayed, failed",
    labelNames: ["channel", "outcome"],
    registers: [registry],
  });
  new Gauge({
    name: "tocsin_notifications",
    help: "Notifications that are kept, by status",
    labelNames: ["channel", "status"],
    registers: [registry],
    async collect() {
      this.reset();
      for (const { channel, status, count } of await notifications.counts()) this.set({ channel, status }, count);
    },
  });
  const interrupted = await notifications.recover(now());
  if (interrupted > 0)
    log.warn({ messages: interrupted }, "messages were being sent when the service ended; they are sent again");
  const queueOptions: Omit<QueueOptions, "name" | "channel"> = {
    store,
    pace: { ...PACE, perMinuteMax, ...options.pace },
    retryMs: options.retryMs,
    urlOf: options.urlOf,
    newDeliveryId: idMaker("dlv_", now),
    newEntryId: idMaker("tln_", now),
    count: (name, outcome, count) => outcomes.inc({ channel: name, outcome }, count),
    log,
    now,
    steadyNow: options.steadyNow ?? (() => performance.now()),
    random,
  };
  const queues: ChannelQueue[] = [];
  for (const name of CHANNELS) {
    const channel = channels.get(name);
    const queue = new ChannelQueue({ ...queueOptions, name, channel: channel ?? absent(name) });
    if (channel) queues.push(queue);
    else await queue.giveUp();
  }
  const stopListening = notifications.onQueued(() => {
    for (const queue of queues) queue.wake();
  });
  for (const queue of queues) queue.start();
  return {
    close: async () => {
      stopListening();
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

/** A channel that the settings do not have any more refuses what was in line for it. */
function absent(name: ChannelName) {
  const error = `the channel ${name} is not configured`;
  return { send: () => Promise.resolve({ kind: "refused" as const, error }) };
}
