import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DAY_MS } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { openStore } from "../store/index.ts";
import type { Store } from "../store/store.ts";
import { openAlerts, type Alerts } from "./alerts.ts";
import { findingOf, PERIOD } from "./finding.fixture.ts";

const dataDir = mkdtempSync(join(tmpdir(), "tocsin-room-"));
const registry = new Registry();
let store: Store;
let few: Alerts;
let clock = 1_000_000;

beforeAll(async () => {
  const log = pino({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry: new Registry(), log });
  const addException = () => Promise.reject(new Error("unasked"));
  const telling = { channels: ["email" as const], onResolve: false };
  few = openAlerts({ store, now: () => ++clock, telling, addException, registry, unresolvedMax: 3 });
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

describe("a rule with as many unresolved alerts as there may be", () => {
  const from = (group: string, times: readonly number[] = [1]) =>
    findingOf(ruleId, times, { foldKey: `["${group}"]`, group: { field: "raw.src_ip", value: group } });
  const counts = async () => (await ofRule()).map(({ group, eventCount }) => [group?.value ?? null, eventCount]);

  test("gets one more for all that is beyond, whatever its group", async () => {
    await few.raise([from("a"), from("b")], undefined);
    await few.raise([from("c"), from("d", [1, 2]), from("d"), from("e")], undefined);
    await few.raise([from("f", [100 * PERIOD]), from("d")], undefined);
    expect(await counts()).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
      [null, 6],
    ]);
    const beyond = (await ofRule()).at(-1)!;
    expect(beyond.title).toBe(`site.${ruleId}: 3 of its alerts are unresolved, more are counted here`);
    expect(beyond.relatedEvents).toHaveLength(6);
    expect(await kinds(beyond.id)).toEqual(["created", "events_added"]);
    expect(await registry.getSingleMetric("tocsin_alerts_beyond_total")!.get()).toMatchObject({
      values: [{ value: 5 }],
    });
  });

  test("goes on with those that it has", async () => {
    await few.raise([from("a"), from("b"), from("c")], undefined);
    await few.raise([from("b", [2, 3]), from("d"), from("a", [4])], undefined);
    expect(await counts()).toEqual([
      ["a", 2],
      ["b", 3],
      ["c", 1],
      [null, 1],
    ]);
  });

  test("gets as many again as are resolved, and others have theirs all the while", async () => {
    await few.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    const [first, second, third, beyond] = await ofRule();
    const full = ruleId;
    ruleId = `rule_${++rules}`;
    await few.raise([from("d")], undefined);
    expect(await counts()).toEqual([["d", 1]]);
    ruleId = full;
    for (const { id } of [first!, second!]) await few.move(id, { action: "resolve", resolution: "benign" }, "anna");
    await few.raise([from("e"), from("f"), from("g")], undefined);
    expect((await counts()).slice(4)).toEqual([
      ["e", 1],
      ["f", 1],
    ]);
    expect((await store.alerts.get(beyond!.id))!.eventCount).toBe(2);
    await few.move(third!.id, { action: "resolve", resolution: "benign" }, "anna");
    await few.move(first!.id, { action: "reopen" }, "anna");
    await few.raise([from("h")], undefined);
    expect((await store.alerts.get(beyond!.id))!.eventCount).toBe(3);
  });

  test("is told of again on another day of the service, not for times that events say", async () => {
    await few.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    await few.raise([from("e", [DAY_MS]), from("f", [300 * DAY_MS])], undefined);
    await few.raise([from("g", [2]), from("h", [500 * DAY_MS])], undefined);
    expect((await counts()).slice(3)).toEqual([[null, 5]]);
    clock += DAY_MS;
    await few.raise([from("i", [3]), from("j", [400 * DAY_MS])], undefined);
    expect((await counts()).slice(3)).toEqual([
      [null, 5],
      [null, 2],
    ]);
    const [first] = await ofRule();
    await few.move(first!.id, { action: "resolve", resolution: "benign" }, "anna");
    await few.raise([from("k"), from("l")], undefined);
    expect((await counts()).slice(4)).toEqual([
      [null, 3],
      ["k", 1],
    ]);
  });

  test("is bound as well where many raise at once", async () => {
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((group) => few.raise([from(group)], undefined)));
    expect(await ofRule()).toHaveLength(4);
  });

  test("has silences counted, which have no events", async () => {
    const silent = (group: string) => ({ ...from(group), eventCount: 0, events: [] });
    await few.raise([from("a"), from("b"), from("c"), silent("d"), silent("e")], undefined);
    await few.raise([silent("f")], undefined);
    expect((await counts()).at(-1)).toEqual([null, 3]);
  });

  test("adds to the alert that is near, also what comes with something that is beyond", async () => {
    await few.raise([from("a", [1000]), from("b"), from("c")], undefined);
    await few.raise([from("a", [2900]), from("a", [1950])], undefined);
    expect(await counts()).toEqual([
      ["a", 2],
      ["b", 1],
      ["c", 1],
      [null, 1],
    ]);
  });

  test("gets another one for what is beyond once the first is resolved", async () => {
    await few.raise([from("a"), from("b"), from("c"), from("d")], undefined);
    const beyond = (await ofRule()).at(-1)!;
    await few.raise([from("x")], undefined);
    await few.move(beyond.id, { action: "resolve", resolution: "benign" }, "anna");
    await few.raise([from("e"), from("f")], undefined);
    expect((await counts()).slice(3)).toEqual([
      [null, 2],
      [null, 2],
    ]);
  });
});
