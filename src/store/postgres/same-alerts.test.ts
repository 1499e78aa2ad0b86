import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import type { Alert, TimelineEntry } from "../../model/alert.ts";
import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import { SEVERITIES, type JsonObject } from "../../model/event.ts";
import { identifyDefinition } from "../../model/rule-definition.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import type { AlertChanges, AlertSort, ChangedAlert } from "../ports/alert-store.ts";
import type { CasePart } from "../ports/store.ts";
import { openCaseDatabase } from "../sqlite/cases/case-database.ts";
import {
  ADDRESSES,
  alertAggregations,
  alertConditions,
  alertSorts,
  NAMES,
  WORDS,
} from "../testing/arbitrary-alert-queries.ts";
import { newAlert } from "../testing/new-alert.ts";
import { openAllPostgresCases } from "./postgres-cases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// The same random operations on alerts, rules, detection and notifications of both engines give the same answers.

type Part = Pick<CasePart, "alerts" | "rules" | "detection" | "notifications" | "dueAlerts">;
type Operation = (cases: Part) => Promise<unknown>;

const RUNS = 60;
const PROPERTY_MS_MAX = 300_000;
const NOW = 1_800_000_000_000;
const log = pino({ level: "silent" });

/** Few, so that operations meet; their order is not that of creation. */
const IDS = Array.from({ length: 16 }, (_, i) => `alt_${((i * 7) % 16).toString(16)}`);
const EVENTS = ["evt_1", "evt_2", "evt_a\u0000b", `evt_${"0".repeat(31)}1`, `evt_${"0".repeat(31)}2`];
const TEXTS = [...WORDS, "\u0000 and", "it's a\\b", "a:b@c/d", "192.0.2.1:443", ""];

const id = fc.constantFrom(...IDS);
const time = fc.integer({ min: 0, max: 50 }).map((seconds) => seconds * 1000);
const text = fc.constantFrom(...TEXTS);
const marks = fc
  .uniqueArray(fc.constantFrom(...EVENTS), { maxLength: 3 })
  .map((ids) => ids.map((event, i) => ({ id: event, timestampMs: i })));
const entities = fc.array(
  fc.record({
    kind: fc.constantFrom("user" as const, "address" as const),
    value: fc.constantFrom(...WORDS, ...ADDRESSES, "a\u0000"),
    count: fc.nat(3),
  }),
  { maxLength: 3 },
);
const channel = fc.constantFrom("slack" as const, "email" as const);
const definition = fc.nat(3).map((n) =>
  identifyDefinition({
    source: "any",
    conditions: [{ field: `raw.x${n}`, exists: true }],
    window: null,
    threshold: null,
    sequence: null,
    sequenceOrder: "in_order",
    groupBy: null,
    absence: null,
  }),
);

/** What a commit changes in an alert; fields that are missing stay. */
const changed = fc.record(
  {
    title: text,
    description: text,
    severity: fc.constantFrom(...SEVERITIES),
    status: fc.constantFrom(...STATUSES),
    assignee: fc.constantFrom(null, "anna@example.com", "Anna@Example.com"),
    resolution: fc.constantFrom(null, ...RESOLUTIONS),
    eventCount: fc.nat(20),
    firstEventAt: time,
    // Ties would be broken at will.
    lastEventAt: fc.nat(10_000_000),
    firstAcknowledgedAt: fc.option(time),
    resolvedAt: fc.option(time),
    tags: fc.uniqueArray(fc.constantFrom("a", "b", "vip"), { maxLength: 2 }),
    entities,
    relatedEvents: marks,
    olderEvents: marks,
    definitionId: definition.map((each) => each.id),
    enrichment: fc.constantFrom<JsonObject>({}, { score: 2n ** 60n, mixed: [1, "1"] } as unknown as JsonObject, {
      geo: { country: "AT" },
    }),
  },
  { requiredKeys: [] },
);
const born = fc.record({
  rule: fc.constantFrom(...NAMES).map((name) => ({ id: `rule_${name}`, name, description: "", tags: [] })),
  source: fc.constantFrom("custom", "platform_network"),
  foldKey: fc.constantFrom("k", "key", 'k\\"', "other"),
  group: fc.constantFrom(null, { field: "raw.user", value: "a\u0000b" }, { field: "raw.door", value: "Tür" }),
  createdAt: time,
});
const entry = fc.record({
  id: fc.constant("tln_1"),
  at: time,
  actor: fc.constantFrom("anna", "system"),
  kind: fc.constantFrom("events_added" as const, "reopened" as const),
  count: fc.nat(5),
}) as fc.Arbitrary<TimelineEntry>;
const detected = fc.record({
  upTo: fc.constantFrom("evt_1", "evt_2", "a,b"),
  matches: fc.array(
    fc.record({
      ruleId: fc.constantFrom("rule_a", "rule_b"),
      timesMs: fc.array(
        fc.integer({ min: 0, max: 9 * 86_400_000 }).map((ms) => NOW - ms),
        { minLength: 1, maxLength: 5 },
      ),
    }),
    { maxLength: 3 },
  ),
  seen: fc.array(
    fc.record({
      ruleId: fc.constantFrom("rule_a", "rule_b"),
      group: text,
      atMs: time,
      last: fc.constant(null),
    }),
    { maxLength: 3 },
  ),
});
const draft = fc.record({ id, born, changed, step: fc.constantFrom(1, 1, 1, 1, 1, 0, 2) });

let numbers = 0;
const commits: fc.Arbitrary<Operation> = fc
  .record({
    drafts: fc.array(draft, { maxLength: 4 }),
    entries: fc.array(fc.record({ alertId: id, entry }), { maxLength: 2 }),
    channels: fc.array(channel, { maxLength: 3 }),
    definitions: fc.array(definition, { maxLength: 2 }),
    detected: fc.option(detected, { nil: undefined }),
  })
  .map(({ drafts, entries, channels, ...rest }) => {
    const number = numbers++;
    return async ({ alerts }: Part) => {
      const versions = new Map<string, Alert | undefined>();
      for (const alertId of IDS) versions.set(alertId, await alerts.get(alertId));
      const given = drafts.map((each): ChangedAlert => {
        const known = versions.get(each.id);
        const { relatedEvents: _events, ...summary } = known ?? newAlert({ id: each.id, ...each.born, version: 0 });
        const next = { ...summary, ...each.changed, version: summary.version + each.step };
        // Two changes of one alert in one commit follow each other.
        versions.set(each.id, { ...next, relatedEvents: [] });
        return next;
      });
      const changes: AlertChanges = {
        alerts: given,
        timeline: entries.filter(({ alertId }) => versions.get(alertId) !== undefined),
        notifications: channels.map((to, i) => ({
          id: `ntf_${number}_${i}`,
          alertId: drafts[0]?.id ?? IDS[0]!,
          channel: to,
          reason: "created" as const,
          createdAt: number,
        })),
        ...rest,
      };
      return [await alerts.commit(changes), await alerts.lastChange()];
    };
  });

const filter = fc.record(
  {
    status: fc.subarray([...STATUSES], { minLength: 1 }),
    severity: fc.subarray([...SEVERITIES], { minLength: 1 }),
    ruleName: fc.subarray(NAMES, { minLength: 1 }),
    assignee: fc.subarray([null, "ANNA@example.com"], { minLength: 1 }),
    tag: fc.subarray(["a", "vip"], { minLength: 1 }),
    entity: fc.array(fc.record({ value: fc.constantFrom(...WORDS, "A\u0000") }), { minLength: 1, maxLength: 2 }),
    eventId: fc.subarray([...EVENTS, "evt_none"], { minLength: 1 }),
    time: fc.constantFrom("created" as const, "overlap" as const),
    fromMs: time,
    toMs: time,
    search: fc.constantFrom("door", "do", "camera dark", '"camera dark"', "tür", "a\\b", "it's", "443", "d", "anna"),
  },
  { requiredKeys: [] },
);
const position = fc.oneof(
  fc.record({ mode: fc.constant("page" as const), page: fc.integer({ min: 1, max: 3 }), size: fc.constantFrom(2, 50) }),
  fc.record({
    mode: fc.constant("cursor" as const),
    after: fc.option(fc.constantFrom(...IDS, "alt_\u0000"), { nil: undefined }),
    size: fc.constantFrom(2, 50),
  }),
);
const sort = fc.constantFrom<AlertSort>("created_at", "last_event_at", "severity", "event_count");
const reads: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(filter, position, sort, fc.boolean()).map(
    (args): Operation =>
      ({ alerts }) =>
        alerts.list(...args),
  ),
  filter.map(
    (given): Operation =>
      ({ alerts }) =>
        alerts.ids(given, 3),
  ),
  fc
    .record({
      condition: alertConditions(IDS),
      sort: alertSorts,
      after: fc.option(fc.constantFrom(...IDS, "alt_none"), { nil: undefined }),
      limit: fc.constantFrom(0, 2, 50),
      aggs: fc.array(alertAggregations, { maxLength: 2 }),
      search: fc.option(fc.constantFrom("door", '"camera dark"', "192.0.2"), { nil: undefined }),
    })
    .map(
      ({ aggs, ...query }): Operation =>
        ({ alerts }) =>
          alerts.search({ ...query, aggs: aggs.map((aggregation, i) => ({ name: `agg${i}`, aggregation })) }),
    ),
  fc.tuple(time, time).map(([a, b]): Operation => async ({ alerts, dueAlerts }) => {
    const range = { fromMs: Math.min(a, b), toMs: Math.max(a, b) + 1 };
    return [
      await alerts.totals(range),
      await alerts.trends({ ...range, intervalMs: 7000, rulesMax: 2 }),
      await alerts.outcomes(NAMES, { createdMs: a, resolvedMs: b }),
      await alerts.resolutions(NAMES[0]!),
      await alerts.work({ ...range, limit: 3 }),
      await dueAlerts(a),
    ];
  }),
  fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 9 })).map(
    ([change, limit]): Operation =>
      ({ alerts }) =>
        alerts.changedSince(change, limit),
  ),
  fc
    .tuple(id, fc.option(fc.constantFrom(...EVENTS), { nil: undefined }), fc.boolean())
    .map(([alertId, after, descending]): Operation => async ({ alerts }) => [
      await alerts.getMany([alertId, "alt_none", "alt_\u0000"]),
      await alerts.withTimeline(alertId),
      await alerts.events(alertId, { after, limit: 2, descending }),
    ]),
  fc
    .tuple(born, fc.nat(10_000_000), fc.integer({ min: 0, max: 3 }))
    .map(([{ rule, foldKey }, ms, countMax]): Operation => async ({ alerts }) => [
      await alerts.unresolved([
        { ruleId: rule.id, dedupKey: foldKey, endsAfterMs: ms, beginsBeforeMs: Infinity },
        { ruleId: rule.id, dedupKey: foldKey, endsAfterMs: -1, beginsBeforeMs: 20_000 },
      ]),
      await alerts.countUnresolved([rule.id, "rule_none"], foldKey, countMax),
      (await alerts.withoutEntities(100)).map((alert) => alert.id).toSorted(),
    ]),
  definition.map(
    (each): Operation =>
      ({ alerts }) =>
        alerts.definition(each.id),
  ),
);

const others: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(fc.array(fc.record({ id, entities }), { maxLength: 3 })).map(
    ([found]): Operation =>
      ({ alerts }) =>
        alerts.fillEntities(found),
  ),
  time.map(
    (ms): Operation =>
      ({ alerts }) =>
        alerts.removeResolvedBefore(ms, new AbortController().signal),
  ),
  fc
    .tuple(channel, fc.integer({ min: 1, max: 4 }), fc.nat(3), fc.option(fc.constantFrom("b\u0000", "c")))
    .map(([to, limit, kind, untold]) => {
      const deliveryId = `dlv_${numbers++}`;
      const waiting = { dueAt: limit, isRepeat: limit % 2 === 0, ...(untold !== null && { untold: [untold] }) };
      const outcomes = [
        { status: "sent", error: null },
        { status: "dead", error: "no\u0000" },
        { status: "waiting", error: "busy", ...waiting },
      ] as const;
      return async ({ notifications }: Part) => {
        const { retry } = await notifications.backlog(to, 0, 2);
        const isRetry = retry !== null && limit % 2 === 1;
        const which = isRetry ? retry.deliveryId : deliveryId;
        const message = await (isRetry ? notifications.beginAgain(which) : notifications.begin(to, deliveryId, limit));
        const outcome = outcomes[kind];
        // Without an outcome, the process ended.
        if (outcome) await notifications.settle(which, outcome, kind, []);
        return [message, await notifications.backlog(to, kind, 2), await notifications.counts()];
      };
    }),
  fc.tuple(channel, fc.nat(3)).map(([to, kind]): Operation => async ({ notifications }) => {
    if (kind === 0) return notifications.recover(5);
    if (kind === 1) return notifications.resend({ channel: to }, 6);
    if (kind === 2) return notifications.removeBefore(2);
    return [
      await notifications.list({ channel: to }, { mode: "page", page: 1, size: 5 }),
      await notifications.list({ status: "dead" }, { mode: "cursor", after: undefined, size: 2 }),
    ];
  }),
  fc
    .tuple(
      fc.constantFrom("rule_a", "rule_b"),
      fc.constantFrom("x.a", "x.b"),
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
      fc.option(fc.constantFrom("evt_1", "evt_2")),
    )
    .map(
      ([ruleId, name, revision, builtin, activeAfter]): Operation =>
        ({ rules }) =>
          rules.put({ ...plainRule({ id: ruleId, name, conditions: [] }), revision, builtin, activeAfter }),
    ),
  fc.constantFrom("rule_a", "rule_b").map(
    (ruleId): Operation =>
      ({ rules }) =>
        rules.remove(ruleId),
  ),
  fc.integer({ min: 0, max: 3 * 86_400_000 }).map((ms): Operation => async ({ rules, detection }) => [
    await rules.list(),
    await rules.stats(["rule_a", "rule_none", "rule_b"], NOW - ms),
    await detection.position(),
    (await detection.seen()).map((row) => JSON.stringify(row)).toSorted(),
    await detection.begin(NOW + ms),
  ]),
);

/** The answer, or what a refusal says. */
async function outcomeOf(operate: Operation, cases: Part): Promise<unknown> {
  try {
    return await operate(cases);
  } catch (error) {
    const { name, field, kind } = error as { name: string; field?: string; kind?: string };
    if (name === "Error" || name === "error") throw error;
    return { name, field, kind };
  }
}

describeWithPostgres("alerts in SQLite and PostgreSQL", () => {
  test(
    "give the same answers to the same operations",
    async () => {
      const opened = new OpenedParts();
      const folder = mkdtempSync(join(tmpdir(), "tocsin-same-"));
      opened.add(() => rmSync(folder, { recursive: true, force: true }));
      const now = () => NOW;
      try {
        const settings = postgresSettings(await testDatabase());
        const postgres = await openAllPostgresCases({ settings, registry: new Registry(), log, now }, opened);
        const sqlite = await openCaseDatabase({ dataDir: folder, registry: new Registry(), now });
        opened.add(() => sqlite.close());
        // Each run goes on with what the last one left, on both sides. So nothing is shrunk.
        const operations = fc.array(
          fc.oneof(
            { weight: 4, arbitrary: commits },
            { weight: 4, arbitrary: reads },
            { weight: 2, arbitrary: others },
          ),
          { minLength: 10, maxLength: 30 },
        );
        const property = fc.asyncProperty(operations, async (all) => {
          for (const operate of all) {
            const wanted = await outcomeOf(operate, sqlite);
            expect(await outcomeOf(operate, postgres)).toEqual(wanted);
          }
        });
        await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
      } finally {
        await opened.close();
      }
    },
    PROPERTY_MS_MAX,
  );
});
