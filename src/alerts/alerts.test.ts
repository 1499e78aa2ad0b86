import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Alert } from "../model/alert.ts";
import type { Status } from "../model/alert-state.ts";
import type { Finding } from "../model/finding.ts";
import type { NewEvent } from "../store/ports/event-engine.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/ports/store.ts";
import { openAlerts, type Alerts, type Transition } from "./alerts.ts";
import { findingOf, PERIOD } from "./finding.fixture.ts";
import type { ExceptionInput } from "../model/rule-schema.ts";

const dataDir = mkdtempSync(join(tmpdir(), "tocsin-alerts-"));
let store: Store;
let alerts: Alerts;
let clock = 1_000_000;
const created: Alert[] = [];
const raised: string[] = [];
const exceptions: [string, ExceptionInput, string][] = [];

beforeAll(async () => {
  const log = pino({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry: new Registry(), log });
  alerts = openAlerts({
    store,
    now: () => clock,
    onCreated: (alert) => created.push(alert),
    onRaised: ({ id }) => raised.push(id),
    notificationPolicy: { channels: ["email", "webhook"], onResolve: true },
    addException: async (...exception) => {
      exceptions.push(exception);
      const revert = async () => void exceptions.splice(exceptions.indexOf(exception), 1);
      return { id: `exc_${exceptions.length}`, reason: exception[1].reason, revert };
    },
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

/** A finding of the current test's rule. */
const finding = (times: readonly number[], more: Partial<Finding> = {}) => findingOf(ruleId, times, more);

const ofRule = async (id = ruleId): Promise<Alert[]> => {
  const filter = { ruleName: [`site.${id}`] };
  const { items } = await store.alerts.list(filter, { mode: "page", page: 1, size: 100 }, "created_at", false);
  return Promise.all(items.map(async (item) => (await store.alerts.get(item.id))!));
};
const kinds = async (id: string) => (await store.alerts.withTimeline(id))!.timeline.map(({ kind }) => kind);
const one = async (): Promise<Alert> => {
  const [alert, ...others] = await ofRule();
  expect(others).toEqual([]);
  return alert!;
};

describe("findings", () => {
  test("that share events count them once in an alert", async () => {
    const made = finding([500, 700]);
    const { events } = finding([600]);
    await alerts.raise([made, { ...made, eventCount: 3, events: [...made.events, ...events] }], undefined);
    await alerts.raise([made], undefined);
    const alert = await one();
    expect(alert).toMatchObject({ eventCount: 3, relatedEvents: [made.events[0], events[0], made.events[1]] });
    const { timeline } = (await store.alerts.withTimeline(alert.id))!;
    expect(timeline).toMatchObject([
      { kind: "created", count: 2 },
      { kind: "events_added", count: 1 },
    ]);
  });

  test("create an alert with their content and report it to onCreated", async () => {
    const made = finding([500, 700]);
    await alerts.raise([made], undefined);
    const alert = await one();
    expect(alert).toEqual({
      id: expect.stringMatching(/^alt_[0-9a-f]{32}$/),
      rule: { id: ruleId, name: `site.${ruleId}`, description: "Described.", tags: ["t"] },
      foldKey: '["a"]',
      group: { field: "raw.src_ip", value: "a" },
      entities: [],
      title: "At 500",
      description: "What happened.",
      severity: "high",
      status: "open",
      source: "custom",
      eventCount: 2,
      firstEventAt: 500,
      lastEventAt: 700,
      createdAt: clock,
      enrichment: { geo: { country: "AT" } },
      aiAnalysis: null,
      assignee: null,
      resolution: null,
      actionsTaken: [],
      acknowledgedAt: null,
      resolvedAt: null,
      firstAcknowledgedAt: null,
      commentCount: 0,
      channels: ["email"],
      relatedEvents: made.events,
      version: 1,
    });
    expect((await store.alerts.withTimeline(alert.id))!.timeline).toEqual([
      { id: expect.stringMatching(/^tln_/), at: clock, actor: "system", kind: "created", count: made.eventCount },
    ]);
    expect(created.at(-1)).toEqual(alert);
  });

  test("add the entities that detection sent, and read those of other events from the store", async () => {
    const raw = { src_ip: "192.0.2.7", user: "eva" };
    const draft = {
      type: "x",
      source: "custom",
      severity: "info",
      class: "audit",
      timestampMs: clock,
      raw,
      enrichment: {},
    };
    const [stored] = await store.events.append([{ draft } as NewEvent]);
    const [first, second] = [finding([500, 700]), finding([600])];
    const sent = { [first.events[1]!.id]: [{ kind: "door", value: "Gate" }] } as const;
    const events = [{ id: stored!.id, timestampMs: 700 }, first.events[1]!];
    await alerts.raise([{ ...first, events, entities: sent }], undefined);
    expect((await one()).entities).toEqual([
      { kind: "address", value: "192.0.2.7", count: 1 },
      { kind: "user", value: "eva", count: 1 },
      { kind: "door", value: "Gate", count: 1 },
    ]);
    // An event that the alert has already counts once.
    const more = { [second.events[0]!.id]: [{ kind: "door", value: "Gate" }], ...sent } as const;
    await alerts.raise(
      [{ ...second, eventCount: 2, events: [...second.events, events[1]!], entities: more }],
      undefined,
    );
    expect((await one()).entities![0]).toEqual({ kind: "door", value: "Gate", count: 2 });
    const absence = { eventCount: 0, events: [], group: { field: "raw.camera", value: "Yard" } };
    await alerts.raise([finding([650], absence)], undefined);
    expect((await one()).entities!.at(-1)).toEqual({ kind: "camera", value: "Yard", count: 0 });
  });

  test("less than the deduplication period away, in either direction, join the existing alert", async () => {
    await alerts.raise([finding([5000])], undefined);
    const before = created.length;
    clock += 10;
    await alerts.raise([finding([5000 + PERIOD - 1])], undefined);
    await alerts.raise([finding([5000 - PERIOD + 1])], undefined);
    const alert = await one();
    expect(alert).toMatchObject({ eventCount: 3, firstEventAt: 4001, lastEventAt: 5999, title: "At 5000" });
    expect(alert.relatedEvents.map(({ timestampMs }) => timestampMs)).toEqual([5999, 5000, 4001]);
    expect((await store.alerts.withTimeline(alert.id))!.timeline).toMatchObject([
      { kind: "created", count: 1 },
      { kind: "events_added", count: 2, at: clock },
    ]);
    expect(created).toHaveLength(before);
    await alerts.raise([finding([5999 + PERIOD])], undefined);
    expect((await ofRule()).map(({ eventCount }) => eventCount)).toEqual([3, 1]);
  });

  test("of another key or another rule create a separate alert", async () => {
    await alerts.raise([finding([1]), finding([1], { dedupKey: '["b"]' })], undefined);
    expect(await ofRule()).toHaveLength(2);
  });

  test("that arrive late join the unresolved alert closest in time", async () => {
    await alerts.raise([finding([1000])], undefined);
    await alerts.raise([finding([9000])], undefined);
    await alerts.raise([finding([1500])], undefined);
    expect((await ofRule()).map(({ eventCount, lastEventAt }) => [eventCount, lastEventAt])).toEqual([
      [2, 1500],
      [1, 9000],
    ]);
  });

  test("do not reopen a resolved alert, but join an acknowledged or a reopened one", async () => {
    await alerts.raise([finding([1000])], undefined);
    const { id } = await one();
    await alerts.transition(id, { action: "acknowledge" }, "anna");
    await alerts.raise([finding([1100])], undefined);
    expect(await one()).toMatchObject({ id, status: "acknowledged", eventCount: 2 });
    await alerts.transition(id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.raise([finding([1200])], undefined);
    expect((await ofRule()).map(({ eventCount, status }) => [eventCount, status])).toEqual([
      [2, "resolved"],
      [1, "open"],
    ]);
    const [, second] = await ofRule();
    await alerts.transition(second!.id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.transition(id, { action: "reopen" }, "anna");
    await alerts.raise([finding([1300])], undefined);
    expect((await ofRule()).map(({ eventCount, status }) => [eventCount, status])).toEqual([
      [3, "open"],
      [1, "resolved"],
    ]);
  });

  test("an absence counts no events and adds a timeline entry each time", async () => {
    const silence = () => finding([1000], { eventCount: 0, events: [] });
    await alerts.raise([silence()], undefined);
    await alerts.raise([silence()], undefined);
    const alert = await one();
    expect(alert).toMatchObject({ eventCount: 0, relatedEvents: [] });
    expect(await kinds(alert.id)).toEqual(["created", "events_added"]);
  });

  test("an alert keeps its newest 50 events", async () => {
    const times = Array.from({ length: 120 }, (_, i) => 1000 + i);
    await alerts.raise(
      times.map((time) => finding([time])),
      undefined,
    );
    const alert = await one();
    expect(alert.eventCount).toBe(120);
    expect(alert.relatedEvents.map(({ timestampMs }) => timestampMs)).toEqual(times.slice(-50).reverse());
    expect(await kinds(alert.id)).toEqual(["created", "events_added"]);
  });

  test("yield the same alerts for any split into calls", async () => {
    const gaps = fc.array(fc.record({ gap: fc.nat({ max: 1500 }), key: fc.constantFrom("x", "y") }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(gaps, fc.integer({ min: 1, max: 30 }), async (steps, size) => {
        const run = async (callSize: number) => {
          ruleId = `rule_${++rules}`;
          let at = 0;
          const list = steps.map(({ gap, key }) => finding([(at += gap)], { dedupKey: key }));
          for (let i = 0; i < list.length; i += callSize) await alerts.raise(list.slice(i, i + callSize), undefined);
          const made = await ofRule();
          return made
            .map(({ foldKey, eventCount, firstEventAt, lastEventAt, title }) =>
              [foldKey, firstEventAt, lastEventAt, eventCount, title].join(" "),
            )
            .sort();
        };
        expect(await run(size)).toEqual(await run(1));
      }),
      { numRuns: 20, seed: 1 },
    );
  });

  test("are committed together with the position of detection", async () => {
    const detected = { upTo: "evt_9", matches: [{ ruleId, timesMs: [3, 4, 5] }], seen: [] };
    await alerts.raise([finding([1])], detected);
    expect(await store.detection.position()).toBe("evt_9");
    await alerts.raise([], { ...detected, upTo: "evt_10", matches: [] });
    expect(await store.detection.position()).toBe("evt_10");
  });

  test("concurrent with transitions lose neither events nor comments", async () => {
    await alerts.raise([finding([1000])], undefined);
    const { id } = await one();
    await Promise.all([
      ...Array.from({ length: 20 }, (_, i) => alerts.raise([finding([1001 + i])], undefined)),
      ...Array.from({ length: 10 }, (_, i) => alerts.transition(id, { action: "comment", comment: `c${i}` }, "anna")),
    ]);
    const alert = await one();
    expect(alert).toMatchObject({ eventCount: 21, commentCount: 10 });
    const timeline = (await store.alerts.withTimeline(id))!.timeline;
    const added = timeline.reduce((sum, entry) => sum + (entry.kind === "events_added" ? entry.count : 0), 0);
    expect(added).toBe(20);
    expect(timeline.filter(({ kind }) => kind === "commented")).toHaveLength(10);
  });
});

describe("transitions", () => {
  const make = async (status: Status): Promise<string> => {
    await alerts.raise([finding([clock])], undefined);
    const { id } = await one();
    if (status !== "open") await alerts.transition(id, { action: "acknowledge", assignee: "a@example.com" }, "anna");
    if (status === "resolved")
      await alerts.transition(id, { action: "resolve", resolution: "benign", actionsTaken: ["looked"] }, "anna");
    return id;
  };
  const TRANSITIONS: Record<string, Transition> = {
    acknowledge: { action: "acknowledge" },
    resolve: { action: "resolve", resolution: "true_positive" },
    reopen: { action: "reopen" },
    comment: { action: "comment", comment: "seen" },
  };

  test.each([
    ["open", "acknowledge", "acknowledged"],
    ["open", "resolve", "resolved"],
    ["open", "reopen", undefined],
    ["open", "comment", "open"],
    ["acknowledged", "acknowledge", "acknowledged"],
    ["acknowledged", "resolve", "resolved"],
    ["acknowledged", "reopen", "open"],
    ["acknowledged", "comment", "acknowledged"],
    ["resolved", "acknowledge", undefined],
    ["resolved", "resolve", undefined],
    ["resolved", "reopen", "open"],
    ["resolved", "comment", "resolved"],
  ] as const)("%s, %s: %s", async (from, name, to) => {
    const id = await make(from);
    const before = await store.alerts.get(id);
    if (to === undefined) {
      await expect(alerts.transition(id, TRANSITIONS[name]!, "ben")).rejects.toMatchObject({
        kind: "conflict",
        message: expect.stringContaining(`is ${from} `),
      });
      expect(await store.alerts.get(id)).toEqual(before);
    } else {
      expect((await alerts.transition(id, TRANSITIONS[name]!, "ben")).alert.status).toBe(to);
      expect((await store.alerts.get(id))?.status).toBe(to);
    }
  });

  test("each adds a timeline entry with its actor; a comment is a separate entry", async () => {
    const id = await make("open");
    const transition = (what: Transition, actor: string) => {
      clock += 1000;
      return alerts.transition(id, what, actor);
    };
    await transition({ action: "acknowledge", assignee: "a@example.com", comment: "mine" }, "anna");
    await transition({ action: "acknowledge", assignee: "b@example.com" }, "ben");
    await transition({ action: "acknowledge" }, "ben");
    await transition({ action: "resolve", resolution: "benign", actionsTaken: ["called"], comment: "**fine**" }, "ben");
    await transition({ action: "reopen", comment: "again" }, "cara");
    const timeline = (await store.alerts.withTimeline(id))!.timeline;
    expect(timeline).toMatchObject([
      { kind: "created", actor: "system" },
      { kind: "acknowledged", actor: "anna", assignee: "a@example.com" },
      { kind: "commented", actor: "anna", comment: { body: "mine", author: "anna" } },
      { kind: "assigned", actor: "ben", assignee: "b@example.com" },
      { kind: "resolved", actor: "ben", resolution: "benign", actionsTaken: ["called"] },
      { kind: "commented", actor: "ben", comment: { body: "**fine**" } },
      { kind: "reopened", actor: "cara" },
      { kind: "commented", actor: "cara", comment: { body: "again" } },
    ]);
    const times = timeline.map(({ at }) => at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  test("reopening clears the resolution and the times but keeps the assignee", async () => {
    const id = await make("resolved");
    const { firstAcknowledgedAt } = (await store.alerts.get(id))!;
    clock += 5000;
    const { alert } = await alerts.transition(id, { action: "reopen" }, "ben");
    expect(alert).toMatchObject({
      status: "open",
      assignee: "a@example.com",
      acknowledgedAt: null,
      resolvedAt: null,
      resolution: null,
      actionsTaken: [],
      firstAcknowledgedAt,
    });
  });

  test("of two concurrent resolutions one succeeds and the other is refused", async () => {
    const id = await make("open");
    const resolve = (actor: string) => alerts.transition(id, { action: "resolve", resolution: "benign" }, actor);
    const outcomes = await Promise.allSettled(["anna", "ben"].map(resolve));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await kinds(id)).toEqual(["created", "resolved"]);
  });

  test("of many alerts succeed or fail independently", async () => {
    const open = await make("open");
    ruleId += "b";
    const resolved = await make("resolved");
    const outcome = await alerts.transitionMany(
      [resolved, "alt_0", open],
      { action: "resolve", resolution: "benign" },
      "anna",
    );
    expect(outcome.succeeded).toEqual([open]);
    expect(outcome.failed.map(({ id, refusal }) => [id, refusal.kind])).toEqual([
      [resolved, "conflict"],
      ["alt_0", "not_found"],
    ]);
  });

  test("an exception is added only if the alert can be resolved", async () => {
    const id = await make("open");
    const transition = { action: "resolve", resolution: "false_positive" } as const;
    const exception = { conditions: [{ field: "raw.host", equals: "lab" }] };
    const before = exceptions.length;
    const { alert } = await alerts.resolveWithException(id, transition, exception, "anna");
    expect(alert.status).toBe("resolved");
    expect(exceptions.slice(before)).toEqual([[ruleId, { ...exception, reason: `false positive: ${id}` }, "anna"]]);
    await expect(alerts.resolveWithException(id, transition, exception, "anna")).rejects.toHaveProperty(
      "kind",
      "conflict",
    );
    await expect(alerts.resolveWithException("alt_0", transition, exception, "anna")).rejects.toHaveProperty(
      "kind",
      "not_found",
    );
    expect(exceptions).toHaveLength(before + 1);
  });

  test("of several concurrent resolutions with an exception only the successful one keeps its exception", async () => {
    const id = await make("open");
    const transition = { action: "resolve", resolution: "false_positive" } as const;
    const exception = { conditions: [{ field: "raw.host", equals: "lab" }] };
    const before = exceptions.length;
    const outcomes = await Promise.allSettled(
      ["anna", "ben", "cleo"].map((actor) => alerts.resolveWithException(id, transition, exception, actor)),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
    const winner = ["anna", "ben", "cleo"][outcomes.findIndex(({ status }) => status === "fulfilled")];
    expect(exceptions.slice(before).map(([, , author]) => author)).toEqual([winner]);
  });
});

describe("notifications", () => {
  const notificationsOf = async (alertId: string) => {
    const { items } = await store.notifications.list({ alertId }, { mode: "page", page: 1, size: 100 });
    return items.map(({ channel, reason, status }) => [channel, reason, status]).toReversed();
  };
  const named = (channels: Finding["rule"]["channels"]) => ({ rule: { ...finding([0]).rule, channels } });
  const onlyAlert = async (): Promise<Alert> => {
    const { items } = await store.alerts.list(
      { ruleName: [`site.${ruleId}`] },
      { mode: "page", page: 1, size: 10 },
      "created_at",
      true,
    );
    expect(items).toHaveLength(1);
    return (await store.alerts.get(items[0]!.id))!;
  };

  test("are queued for the channels of the rule when an alert is created, not when events join it", async () => {
    await alerts.raise([finding([1]), finding([2])], undefined);
    const { id } = await onlyAlert();
    await alerts.raise([finding([3])], undefined);
    expect(await notificationsOf(id)).toEqual([["email", "created", "waiting"]]);
  });

  test("are queued when a finding raises the severity, not when its severity is lower", async () => {
    await alerts.raise([finding([1], { severity: "low" })], undefined);
    await alerts.raise([finding([2], { severity: "critical" }), finding([3], { severity: "medium" })], undefined);
    await alerts.raise([finding([4], { severity: "info" })], undefined);
    const { id, severity, eventCount } = await onlyAlert();
    expect([severity, eventCount, raised]).toEqual(["critical", 4, [id]]);
    expect(await notificationsOf(id)).toEqual([
      ["email", "created", "waiting"],
      ["email", "severity_raised", "waiting"],
    ]);
    const added = (await store.alerts.withTimeline(id))!.timeline.filter(({ kind }) => kind === "events_added");
    expect(added).toEqual([expect.objectContaining({ count: 3, severity: "critical" })]);
  });

  test("are queued once, with the highest severity, for findings that create an alert together", async () => {
    await alerts.raise([finding([1], { severity: "low" }), finding([2], { severity: "high" })], undefined);
    const { id, severity } = await onlyAlert();
    expect(severity).toBe("high");
    expect(await notificationsOf(id)).toEqual([["email", "created", "waiting"]]);
  });

  test("are queued for reopening and resolving, not for acknowledging or commenting", async () => {
    await alerts.raise([finding([1])], undefined);
    const { id } = await onlyAlert();
    await alerts.transition(id, { action: "acknowledge" }, "anna");
    await alerts.transition(id, { action: "comment", comment: "hm" }, "anna");
    await alerts.transition(id, { action: "resolve", resolution: "benign" }, "anna");
    await alerts.transition(id, { action: "reopen" }, "anna");
    expect((await notificationsOf(id)).map(([, reason]) => reason)).toEqual(["created", "resolved", "reopened"]);
  });

  test("are queued for resolving only if the policy says so", async () => {
    const quiet = openAlerts({
      store,
      now: () => clock,
      notificationPolicy: { channels: ["email"], onResolve: false },
      addException: async (_, { reason }) => ({ id: "exc_1", reason, revert: async () => undefined }),
    });
    await quiet.raise([finding([1])], undefined);
    const { id } = await onlyAlert();
    await quiet.transition(id, { action: "resolve", resolution: "benign" }, "anna");
    expect((await notificationsOf(id)).map(([, reason]) => reason)).toEqual(["created"]);
  });

  test("are queued for every change of the status on a channel that follows alerts", async () => {
    const followed = openAlerts({
      store,
      now: () => clock,
      notificationPolicy: { channels: ["email", "pagerduty"], onResolve: false, followers: ["pagerduty"] },
      addException: async (_, { reason }) => ({ id: "exc_1", reason, revert: async () => undefined }),
    });
    await followed.raise([finding([1], named(["email", "pagerduty"]))], undefined);
    const { id } = await onlyAlert();
    await followed.transition(id, { action: "acknowledge" }, "anna");
    await followed.transition(id, { action: "acknowledge", assignee: "ben" }, "anna");
    await followed.transition(id, { action: "resolve", resolution: "benign" }, "anna");
    await followed.transition(id, { action: "reopen" }, "anna");
    const told = await notificationsOf(id);
    const reasonsOn = (name: string) => told.filter(([channel]) => channel === name).map(([, reason]) => reason);
    expect(reasonsOn("email")).toEqual(["created", "reopened"]);
    expect(reasonsOn("pagerduty")).toEqual(["created", "acknowledged", "resolved", "reopened"]);
  });

  test("are not queued for a channel that is not configured, which is recorded on the timeline once", async () => {
    await alerts.raise([finding([1], named(["slack", "webhook"]))], undefined);
    const { id } = await onlyAlert();
    await alerts.transition(id, { action: "acknowledge" }, "anna");
    await alerts.transition(id, { action: "reopen" }, "anna");
    expect(await notificationsOf(id)).toEqual([
      ["webhook", "created", "waiting"],
      ["webhook", "reopened", "waiting"],
    ]);
    const notified = (await store.alerts.withTimeline(id))!.timeline.filter(({ kind }) => kind === "notified");
    expect(notified).toEqual([expect.objectContaining({ channel: "slack", outcome: "not_configured" })]);
  });

  test("are not queued for an alert stored without channels", async () => {
    await alerts.raise([finding([1])], undefined);
    const { channels, relatedEvents, ...alert } = await onlyAlert();
    expect([channels, relatedEvents.length]).toEqual([["email"], 1]);
    await store.alerts.commit({
      alerts: [{ ...alert, version: alert.version + 1, channels: undefined }],
      timeline: [],
    });
    await alerts.transition(alert.id, { action: "resolve", resolution: "benign" }, "anna");
    expect((await notificationsOf(alert.id)).map(([, reason]) => reason)).toEqual(["created"]);
  });
});
