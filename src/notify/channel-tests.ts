import type { Logger } from "pino";
import { idMaker } from "../lib/id.ts";
import {
  CHANNEL_TESTS_MAX,
  CHANNEL_TESTS_MS,
  type ChannelTest,
  type ChannelTestResult,
} from "../model/channel-status.ts";
import type { Channel } from "../model/rule.ts";
import { sendWithin, type ChannelSender, type ConfiguredChannels } from "./channel.ts";
import { testMessage } from "./test-message.ts";

/** Limit for one attempt: somebody waits for the answer. */
const TEST_MS_MAX = 20_000;

export interface ChannelTestsOptions {
  readonly channels: ConfiguredChannels;
  /** The link in the message. */
  readonly urlOf: () => string;
  readonly log: Logger;
  readonly now: () => number;
  readonly steadyNow?: () => number;
}

interface TestedChannel {
  isInFlight: boolean;
  /** By the steady clock, oldest first. */
  startedAt: number[];
  last: ChannelTest | null;
}

/** Sends test messages through the same senders as real ones, one at a time per channel. Nothing is stored or retried. */
export class ChannelTests {
  readonly #options: ChannelTestsOptions;
  readonly #steadyNow: () => number;
  readonly #tested = new Map<Channel, TestedChannel>();
  readonly #newDeliveryId: () => string;
  readonly #stop = new AbortController();

  constructor(options: ChannelTestsOptions) {
    this.#options = options;
    this.#steadyNow = options.steadyNow ?? (() => performance.now());
    this.#newDeliveryId = idMaker("dlv_", options.now);
  }

  last(name: Channel): ChannelTest | null {
    return this.#tested.get(name)?.last ?? null;
  }

  /** `by` is the name of the key that asks. */
  async send(name: Channel, by: string): Promise<ChannelTestResult> {
    const sender = this.#options.channels.get(name);
    if (!sender) return { kind: "not_configured" };
    const tested = this.#tested.get(name) ?? { isInFlight: false, startedAt: [], last: null };
    this.#tested.set(name, tested);
    const at = this.#steadyNow();
    tested.startedAt = tested.startedAt.filter((startedAt) => at - startedAt < CHANNEL_TESTS_MS);
    if (tested.isInFlight) {
      const message = `a test of the channel ${name} is in progress`;
      return { kind: "too_many", message, retryAfterSeconds: TEST_MS_MAX / 1000 };
    }
    if (tested.startedAt.length >= CHANNEL_TESTS_MAX) {
      const retryAfterSeconds = Math.ceil((tested.startedAt[0]! + CHANNEL_TESTS_MS - at) / 1000);
      const message = `the channel ${name} was tested ${CHANNEL_TESTS_MAX} times within ${CHANNEL_TESTS_MS / 60_000} minutes, the maximum`;
      return { kind: "too_many", message, retryAfterSeconds };
    }
    tested.startedAt.push(at);
    tested.isInFlight = true;
    try {
      tested.last = await this.#attempt(name, sender, by);
      return { kind: "tested", test: tested.last };
    } finally {
      tested.isInFlight = false;
    }
  }

  async #attempt(name: Channel, sender: ChannelSender, by: string): Promise<ChannelTest> {
    const { urlOf, now, log } = this.#options;
    const startedAt = this.#steadyNow();
    const deliveryId = this.#newDeliveryId();
    const message = testMessage({ deliveryId, at: now(), url: urlOf(), reason: `${by} asked for a test.` });
    const outcome = await sendWithin(TEST_MS_MAX, this.#stop.signal, (signal) => sender.send(message, signal));
    const error = outcome.error ?? null;
    log.info({ channel: name, deliveryId, by, outcome: outcome.kind, error }, "channel tested");
    return { at: now(), outcome: outcome.kind, error, durationMs: Math.round(this.#steadyNow() - startedAt) };
  }

  close(): void {
    this.#stop.abort();
  }
}
