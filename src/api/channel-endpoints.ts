import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import {
  CHANNEL_TESTS_MAX,
  CHANNEL_TESTS_MS,
  TEST_OUTCOMES,
  type ChannelHealth,
  type ChannelTest,
  type ChannelTestResult,
} from "../model/channel-status.ts";
import type { Notification } from "../model/notification.ts";
import { CHANNELS, type Channel } from "../model/rule.ts";
import type { NotificationStore } from "../store/ports/notification-store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { Problem } from "./problems.ts";
import { data } from "./response.ts";

// The notification channels: whether each works, and a test message.

const CHANNEL_STATES = ["not_configured", "unused", "working", "failing"] as const;
const timeSchema = z.iso.datetime();
const count = z.int().min(0);

const testSchema = z
  .object({
    channel: z.enum(CHANNELS),
    outcome: z.enum(TEST_OUTCOMES).describe("partly: not to all recipients; refused: by the peer, for good"),
    error: z.string().nullable(),
    duration_ms: count,
    at: timeSchema,
  })
  .meta({ id: "ChannelTest" });

const channelSchema = z
  .object({
    name: z.enum(CHANNELS),
    configured: z.boolean(),
    required_settings: z.array(z.string()).describe("the channel is configured when all of these are set"),
    state: z
      .enum(CHANNEL_STATES)
      .describe("unused: nothing was sent yet; failing: the last message was not delivered, or not to all recipients"),
    queue: z.object({
      waiting: count.describe("notifications that are not delivered yet"),
      sending: count,
      dead: count.describe("notifications given up; they can be resent"),
    }),
    last_delivery_at: timeSchema.nullable(),
    last_error: z.object({ message: z.string(), at: timeSchema }).nullable(),
    paused_until: timeSchema.nullable().describe("when the next attempt is made after a failure"),
    last_test: testSchema.omit({ channel: true }).nullable().describe("the last test message since the start"),
  })
  .meta({ id: "ChannelStatus" });

const TEST_EXAMPLE: z.input<typeof testSchema> = {
  channel: "slack",
  outcome: "refused",
  error: "answered 404: no_service",
  duration_ms: 182,
  at: "2026-11-15T08:30:02.480Z",
};

const CHANNEL_EXAMPLE: z.input<typeof channelSchema> = {
  name: "slack",
  configured: true,
  required_settings: ["notifications.slack_url"],
  state: "failing",
  queue: { waiting: 2, sending: 0, dead: 1 },
  last_delivery_at: "2026-11-14T21:04:11.007Z",
  last_error: { message: "answered 404: no_service", at: "2026-11-15T08:30:02.480Z" },
  paused_until: null,
  last_test: null,
};

export interface ChannelEndpointOptions {
  readonly notifications: NotificationStore;
  readonly requiredSettings: (channel: Channel) => readonly string[];
  /** The configured channels. */
  readonly channels: readonly Channel[];
  /** Undefined before the first attempt could be made. */
  readonly healthOf: (channel: Channel) => Promise<ChannelHealth | undefined>;
  readonly lastTest: (channel: Channel) => ChannelTest | null;
  readonly test: (channel: Channel, by: string) => Promise<ChannelTestResult>;
}

export function channelEndpoints(options: ChannelEndpointOptions): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/channels",
      operationId: "listChannels",
      tag: "Notifications",
      summary: "List the notification channels and whether they work",
      description:
        "Lists every channel that the service knows, configured or not. Addresses and secrets are not shown.",
      scopes: ["alerts:read"],
      responses: {
        200: { description: "the channels", data: z.array(channelSchema), example: [CHANNEL_EXAMPLE] },
      },
      handle: async () => data(await channelViews(options)),
    }),
    endpoint({
      method: "POST",
      path: "/v1/notifications/test",
      operationId: "testChannel",
      tag: "Notifications",
      summary: "Send a test message to a channel",
      description:
        "Sends one message, waits for the outcome and reports it; nothing is stored or retried. The message names the key. A " +
        `channel is tested at most ${CHANNEL_TESTS_MAX} times in ${CHANNEL_TESTS_MS / 60_000} minutes, by all keys together.`,
      scopes: ["rules:write"],
      body: z.strictObject({ channel: z.enum(CHANNELS) }).meta({ id: "ChannelTesting" }),
      example: { channel: "slack" },
      responses: { 200: { description: "the outcome, good or bad", data: testSchema, example: TEST_EXAMPLE } },
      problems: ["conflict"],
      handle: async ({ body: { channel }, key }) => {
        const result = await options.test(channel, key.name);
        if (result.kind === "not_configured")
          throw new Problem("conflict", `the channel ${channel} is not configured; configure it before the test`);
        if (result.kind === "too_many") {
          const headers = { "Retry-After": String(result.retryAfterSeconds) };
          throw new Problem("rate_limited", result.message, { headers });
        }
        return data({ channel, ...testView(result.test) });
      },
    }),
  ];
}

async function channelViews(options: ChannelEndpointOptions): Promise<z.input<typeof channelSchema>[]> {
  const counts = await options.notifications.counts();
  const countOf = (channel: Channel, status: Notification["status"]) =>
    counts.find((each) => each.channel === channel && each.status === status)?.count ?? 0;
  return Promise.all(
    CHANNELS.map(async (name) => {
      const configured = options.channels.includes(name);
      const health = configured ? await options.healthOf(name) : undefined;
      const test = options.lastTest(name);
      const { lastSentAt, lastError } = await lastOutcomes(name, health, options.notifications);
      return {
        name,
        configured,
        required_settings: [...options.requiredSettings(name)],
        state: configured ? stateOf(lastSentAt, lastError?.at ?? null, test) : "not_configured",
        queue: {
          waiting: countOf(name, "waiting"),
          sending: countOf(name, "sending"),
          dead: countOf(name, "dead"),
        },
        last_delivery_at: lastSentAt === null ? null : formatTime(lastSentAt),
        last_error: lastError && { message: lastError.message, at: formatTime(lastError.at) },
        paused_until: health?.pausedUntil ? formatTime(health.pausedUntil) : null,
        last_test: test && testView(test),
      };
    }),
  );
}

/** What the process has seen, or before that, what the store remembers of earlier ones. */
async function lastOutcomes(name: Channel, health: ChannelHealth | undefined, notifications: NotificationStore) {
  const newest = async (status: "sent" | "dead") =>
    (await notifications.list({ status, channel: name }, { mode: "page", page: 1, size: 1 })).items[0];
  const [sent, dead] = await Promise.all([
    health?.lastSentAt == null ? newest("sent") : undefined,
    health?.lastError == null ? newest("dead") : undefined,
  ]);
  const stored = dead?.error != null && dead.settledAt !== null ? { message: dead.error, at: dead.settledAt } : null;
  return { lastSentAt: health?.lastSentAt ?? sent?.settledAt ?? null, lastError: health?.lastError ?? stored };
}

/** The newest outcome decides. A delivery with an error did not reach everybody. */
function stateOf(sentAt: number | null, errorAt: number | null, test: ChannelTest | null) {
  const failedAt = Math.max(errorAt ?? 0, test?.error != null ? test.at : 0);
  const workedAt = Math.max(sentAt ?? 0, test?.error === null ? test.at : 0);
  if (failedAt === 0 && workedAt === 0) return "unused";
  return failedAt >= workedAt ? "failing" : "working";
}

function testView({ outcome, error, durationMs, at }: ChannelTest) {
  return { outcome, error, duration_ms: durationMs, at: formatTime(at) };
}
