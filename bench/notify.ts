import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { idMaker } from "../src/lib/id.ts";
import { openChannels } from "../src/notify/open-channels.ts";
import { alertLinks, openNotifier } from "../src/notify/notifier.ts";
import { NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../src/notify/peers.fixture.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/ports/store.ts";
import { memoryOf, timed, watchMemory } from "./bench.ts";
import { INDEX_PREFIX, PLATFORM } from "./dataset.ts";
import type { Measurement } from "./figures.ts";

// Ten thousand queued webhook notifications, one message each, compared with the same posts without a queue.

const NOTIFICATIONS = 10_000;
const COMMIT_SIZE = 500;
const PLAIN_POSTS = 500;
/** Response time of the peer, a fast one; it sets the pace. */
const PEER_MS = 10;
const SHARE_MIN = 0.6;
const GROWTH_BYTES_MAX = 64 * 1024 * 1024;
/** Warm-up: memory after the first notifications stays allocated. */
const WARM_SHARE = 0.1;
const MEGABYTE = 1024 * 1024;

export async function notify(): Promise<readonly Measurement[]> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-bench-notify-"));
  let count = 0;
  const peer = await startHttpPeer(async (_, { text }) => {
    peer.received.splice(0);
    bodyBytes = Buffer.byteLength(text);
    count++;
    await new Promise((resolve) => setTimeout(resolve, PEER_MS));
    return { status: 200 };
  });
  let bodyBytes = 0;
  const log = pino({ level: "silent" });
  const store = await openStore({
    dataDir: folder,
    platform: PLATFORM,
    indexPrefix: INDEX_PREFIX,
    registry: new Registry(),
    log,
  });
  try {
    await fill(store);
    const settings = { ...NO_CHANNELS, webhookUrl: peer.url, webhookSecret: "bench" };
    let warm: { readonly own: number; readonly watch: ReturnType<typeof watchMemory> } | undefined;
    const drained = await timed(async () => {
      const notifier = await openNotifier({
        store,
        channels: openChannels(settings),
        perMinuteMax: NOTIFICATIONS * 2,
        retryMs: 3_600_000,
        linksTo: (id) => alertLinks("https://tocsin.example", id, { hasConsole: true }),
        registry: new Registry(),
        log,
        pace: { gatherMs: 0, digestAbove: NOTIFICATIONS * 2, messageMax: 1 },
      });
      while ((await store.notifications.backlog("webhook", 0, Date.now())).freshSince !== null) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (count > NOTIFICATIONS * WARM_SHARE)
          warm ??= { own: memoryOf(process.pid).own, watch: watchMemory(process.pid) };
      }
      await notifier.close();
    });
    const growth = warm!.watch.stop().own - warm!.own;
    const sent = count;
    const body = "x".repeat(bodyBytes - 2);
    const plain = await timed(async () => {
      for (let i = 0; i < PLAIN_POSTS; i++) await post(peer, JSON.stringify(body));
    });
    const perSecond = (sent / drained.ms) * 1000;
    const plainPerSecond = (PLAIN_POSTS / plain.ms) * 1000;
    const share = perSecond / plainPerSecond;
    return [
      {
        name: `${NOTIFICATIONS.toLocaleString("en")} queued notifications sent, one message each`,
        result: `${Math.round(perSecond)}/s`,
        baseline: `${Math.round(plainPerSecond)}/s posted to the same peer without a queue`,
        ratio: share,
        target: `all sent, at least ${SHARE_MIN * 100} % of the rate of plain posts`,
        met: sent === NOTIFICATIONS && share >= SHARE_MIN,
        values: { perSecond, plainPerSecond, share, sent },
      },
      {
        name: "memory meanwhile, including store and peer",
        result: `${(growth / MEGABYTE).toFixed(0)} MB peak growth after the first tenth`,
        target: `at most ${GROWTH_BYTES_MAX / MEGABYTE} MB`,
        met: growth <= GROWTH_BYTES_MAX,
        values: { growth },
      },
    ];
  } finally {
    await store.close();
    await peer.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function fill(store: Store): Promise<void> {
  const newAlertId = idMaker("alt_");
  const newNotificationId = idMaker("ntf_");
  for (let made = 0; made < NOTIFICATIONS; made += COMMIT_SIZE) {
    const alerts = Array.from({ length: COMMIT_SIZE }, () => ({ ...someAlert(), id: newAlertId(), relatedEvents: [] }));
    const notifications = alerts.map(({ id }) => ({
      id: newNotificationId(),
      alertId: id,
      channel: "webhook" as const,
      reason: "created" as const,
      createdAt: Date.now(),
    }));
    await store.alerts.commit({ alerts, timeline: [], notifications });
  }
}

/** One connection per post, as in the channel. */
function post({ url }: HttpPeer, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent: false }, (response) => {
      response.resume();
      response.on("end", resolve);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
