import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DAY_MS } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/ports/store.ts";
import { openAlerts, type Alerts } from "./alerts.ts";
import { findingOf, PERIOD } from "./finding.fixture.ts";

const dataDir = mkdtempSync(join(tmpdir(), "tocsin-unresolved-"));
const registry = new Registry();
let store: Store;
let alerts: Alerts;
let clock = 1_000_000;

beforeAll(async () => {
  const log = pino({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry: new Registry(), log });
  const addException = () => Promise.reject(new Error("not expected in these tests"));
  const notificationPolicy = { channels: ["email" as const], onResolve: false };
  alerts = openAlerts({
    store,
    now: () => ++clock,
    notificationPolicy,
    addException,
    registry,
    unresolvedMax: 3,
  });
});
afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

let rules = 0;
let ruleId = "";
beforeEach(() => {
  ruleId = `rule_${++rules}`;
});

const ofRule = async (): Promise<Alert[]> => {
  const filter = { ruleName: [`site.${ruleId}`] };
  const { items } = await store.alerts.list(filter, { mode: "page", page: 1, size: 100 }, "created_at", false);
  return Promise.all(items.map(async (item) => (await store.alerts.get(item.id))!));
};
const kinds = async (id: string) => (await store.alerts.withTimeline(id))!.timeline.map(({ kind }) => kind);

describe("a rule at its limit of unresolved alerts", () => {
  const from = (group: string, times: readonly number[] = [1]) =>
    findingOf(ruleId, times, { dedupKey: `["${group}"]`, group: { field: "raw.src_ip", value: group } });
  const counts = async () => (await ofRule()).map(({ group, eventCount }) => [group?.value ?? null, eventCount]);

  test("counts further findings in one overflow alert, regardless of group", async () => {
    await alerts.raise([from("a"), from("b")], undefined);
    await alerts.raise([from("c"), from("d", [1, 2]), from("d"), from("e")], undefined);
    await alerts.raise([from("f", [100 * PERIOD]), from("d")], undefined);
    expect(await counts()).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
      [null, 6],
    ]);
    const overflow = (await ofRule()).at(-1)!;
    expect(overflow.title).toBe(`site.${ruleId}: 3 unresolved alerts; further matches are counted here`);
    expect(overflow.relatedEvents).toHaveLength(6);
    expect(await kinds(overflow.id)).toEqual(["created", "events_added"]);
    expect(await registry.getSingleMetric("tocsin_alerts_beyond_total")!.get()).toMatchObject({
      values: [{ value: 5 }],
    });
  });

  test("still adds events to its existing alerts", async () => {
    await alerts.raise([from("a"), from("b"), from("c")], undefined);
    await alerts.raise([from("b", [2, 3]), from("d"), from("a", [4])], undefined);
    expect(await counts()).toEqual([
      ["a", 2],
      ["b", 3],
      ["c", 1],
      [null, 1],
    ]);
  });

  test("creates as many alerts again as are resolved, without affecting other rules", async () => {
    await alerts.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    const [first, second, third, overflow] = await ofRule();
    const full = ruleId;
    ruleId = `rule_${++rules}`;
    await alerts.raise([from("d")], undefined);
    expect(await counts()).toEqual([["d", 1]]);
    ruleId = full;
    for (const { id } of [first!, second!])
      await alerts.transition(id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.raise([from("e"), from("f"), from("g")], undefined);
    expect((await counts()).slice(4)).toEqual([
      ["e", 1],
      ["f", 1],
    ]);
    expect((await store.alerts.get(overflow!.id))!.eventCount).toBe(2);
    await alerts.transition(third!.id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.transition(first!.id, { action: "reopen" }, "anna");
    await alerts.raise([from("h")], undefined);
    expect((await store.alerts.get(overflow!.id))!.eventCount).toBe(3);
  });

  test("gets a new overflow alert on the next day of the service's clock, not for other event times", async () => {
    await alerts.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    await alerts.raise([from("e", [DAY_MS]), from("f", [300 * DAY_MS])], undefined);
    await alerts.raise([from("g", [2]), from("h", [500 * DAY_MS])], undefined);
    expect((await counts()).slice(3)).toEqual([[null, 5]]);
    clock += DAY_MS;
    await alerts.raise([from("i", [3]), from("j", [400 * DAY_MS])], undefined);
    expect((await counts()).slice(3)).toEqual([
      [null, 5],
      [null, 2],
    ]);
    const [first] = await ofRule();
    await alerts.transition(first!.id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.raise([from("k"), from("l")], undefined);
    expect((await counts()).slice(4)).toEqual([
      [null, 3],
      ["k", 1],
    ]);
  });

  test("keeps to the limit under concurrent calls", async () => {
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((group) => alerts.raise([from(group)], undefined)));
    expect(await ofRule()).toHaveLength(4);
  });

  test("counts absences, which have no events", async () => {
    const silent = (group: string) => ({ ...from(group), eventCount: 0, events: [] });
    await alerts.raise([from("a"), from("b"), from("c"), silent("d"), silent("e")], undefined);
    await alerts.raise([silent("f")], undefined);
    expect((await counts()).at(-1)).toEqual([null, 3]);
  });

  test("adds a finding to the alert near it, even beside a finding that overflows", async () => {
    await alerts.raise([from("a", [1000]), from("b"), from("c")], undefined);
    await alerts.raise([from("a", [2900]), from("a", [1950])], undefined);
    expect(await counts()).toEqual([
      ["a", 2],
      ["b", 1],
      ["c", 1],
      [null, 1],
    ]);
  });

  test("gets another overflow alert once the first is resolved", async () => {
    await alerts.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    const overflow = (await ofRule()).at(-1)!;
    await alerts.raise([from("x")], undefined);
    await alerts.transition(overflow.id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.raise([from("e"), from("f")], undefined);
    expect((await counts()).slice(3)).toEqual([
      [null, 2],
      [null, 2],
    ]);
  });
});
