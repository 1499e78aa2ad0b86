import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadBuiltinRules } from "../detection/rules/builtin.ts";
import { createLog } from "../lib/log.ts";
import { DAY_MS } from "../lib/time.ts";
import type { AlertSummary, TimelineEntry } from "../model/alert.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/ports/store.ts";
import { DemoClock, fillDemo } from "./fill.ts";

const to = Date.UTC(2026, 10, 15, 17);
const from = to - 7 * DAY_MS;
const platform = "yard";
const rules = loadBuiltinRules({ platform, timezone: "UTC" });

async function fill(seed: number) {
  const dataDir = await mkdtemp(join(tmpdir(), "tocsin-demo-"));
  const clock = new DemoClock(from);
  const log = createLog({ level: "error", destination: process.stderr });
  const now = clock.now;
  const store = await openStore({ dataDir, platform, indexPrefix: "demo", registry: new Registry(), log, now });
  const options = { store, clock, rules, platform, seed, from, to, events: 6000, flows: 2000, flowsFrom: from };
  const counts = await fillDemo({ ...options, analyseFrom: "medium" });
  const close = async () => {
    await store.close();
    await rm(dataDir, { recursive: true });
  };
  return { store, counts, close };
}

async function alertsOf(store: Store): Promise<AlertSummary[]> {
  const alerts: AlertSummary[] = [];
  let after: string | undefined;
  do {
    const page = await store.alerts.list({}, { mode: "cursor", after, size: 100 }, "created_at", false);
    alerts.push(...page.items);
    after = page.nextCursor ?? undefined;
  } while (after !== undefined);
  return alerts;
}

const timelineOf = async (store: Store, id: string) => (await store.alerts.withTimeline(id))!.timeline;

/** Everything about an alert but its ids, which are random. */
async function storyOf(store: Store) {
  const story: object[] = [];
  for (const { id, ...alert } of await alertsOf(store)) {
    story.push({ alert, timeline: await timelineOf(store, id) });
  }
  return JSON.stringify(story, (key, value) => (key === "id" ? undefined : (value as unknown)));
}

let demo: Awaited<ReturnType<typeof fill>>;
let alerts: AlertSummary[];
let timelines: TimelineEntry[][];
beforeAll(async () => {
  demo = await fill(3);
  alerts = await alertsOf(demo.store);
  timelines = await Promise.all(alerts.map(({ id }) => timelineOf(demo.store, id)));
});
afterAll(() => demo.close());

test("the summary counts what the store has", async () => {
  expect(demo.counts).toMatchObject({ events: await demo.store.events.count(), alerts: alerts.length });
  expect(demo.counts.flows).toBeGreaterThan(2000);
});

test("an alert was raised when its events happened", () => {
  for (const { createdAt, firstEventAt, title } of alerts) {
    expect(createdAt, title).toBeGreaterThan(firstEventAt);
    expect(createdAt, title).toBeLessThan(to + 1000);
  }
  const intrusion = alerts.find(({ rule }) => rule.name === "site.intrusion_across_domains")!;
  expect(intrusion.createdAt - intrusion.lastEventAt).toBe(600);
});

test("nothing on a timeline is later than the demo or before the alert, and entries are in order", () => {
  for (const [i, timeline] of timelines.entries()) {
    const times = timeline.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBe(alerts[i]!.createdAt);
    expect(times.at(-1)).toBeLessThan(to + 1000);
  }
});

test("several people have handled alerts, in every status and with every resolution but some untouched", () => {
  const entries = timelines.flat();
  expect(new Set(alerts.map(({ status }) => status))).toEqual(new Set(["open", "acknowledged", "resolved"]));
  expect(new Set(alerts.map(({ resolution }) => resolution))).toEqual(
    new Set([null, "true_positive", "false_positive", "benign", "duplicate"]),
  );
  expect(new Set(entries.map(({ actor }) => actor))).toEqual(
    new Set(["system", "ada.morin@example.com", "ben.okafor@example.com", "carla.weiss@example.com"]),
  );
  expect(new Set(entries.map(({ kind }) => kind))).toEqual(
    new Set(["created", "events_added", "analysed", "acknowledged", "assigned", "commented", "resolved", "reopened"]),
  );
});

test("the mean times to acknowledge and to resolve are known", async () => {
  const totals = await demo.store.alerts.totals({ fromMs: from, toMs: to });
  expect(totals.acknowledgeMs).toBeGreaterThan(60_000);
  expect(totals.resolveMs).toBeGreaterThan(totals.acknowledgeMs!);
});

test("detection has seen every event, so that the service raises nothing again", async () => {
  expect(await demo.store.detection.position()).toBe(await demo.store.events.lastArrival());
});

test("the same seed and end give the same alerts, another seed gives others", async () => {
  const [same, other] = [await fill(3), await fill(4)];
  const story = await storyOf(demo.store);
  expect(await storyOf(same.store)).toBe(story);
  expect(await storyOf(other.store)).not.toBe(story);
  await Promise.all([same.close(), other.close()]);
});
