import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { idMaker } from "../../lib/id.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { ALWAYS } from "../../model/condition.ts";
import type { ExportJob } from "../../model/export.ts";
import { LeaseLost, type Lease } from "../ports/lease-store.ts";
import type { FencedCases } from "../ports/store.ts";
import { newAlert } from "../testing/new-alert.ts";
import { openAllPostgresCases, type AllPostgresCases } from "./postgres-cases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

const newDeliveryId = idMaker("dlv_");
const newNotificationId = idMaker("ntf_");
const LONG_MS = 600_000;

describeWithPostgres("cases for whoever works under a lease", () => {
  const opened = new OpenedParts();
  let cases: AllPostgresCases;
  let lease: Lease;
  let held: FencedCases;
  let sending = "";

  beforeAll(async () => {
    const settings = postgresSettings(await testDatabase());
    const log = pino({ level: "silent" });
    cases = await openAllPostgresCases({ settings, registry: new Registry(), log }, opened);
    lease = (await cases.leases.acquire("role", "one", LONG_MS))!;
    held = cases.under(lease);
  });
  afterAll(() => opened.close());

  const job: ExportJob = {
    id: "exp_1",
    status: "pending",
    format: "csv",
    question: { condition: ALWAYS, fields: null, fromMs: 0, toMs: 1 },
    rowCount: null,
    sizeBytes: null,
    owner: "key_1",
    createdAt: 1,
    completedAt: null,
    expiresAt: 2,
    error: null,
  };
  const queued = async () => {
    const alert = newAlert({ status: "resolved", resolution: "benign", resolvedAt: 1 });
    const notifications = [1, 2].map((createdAt) => ({
      id: newNotificationId(),
      alertId: alert.id,
      channel: "slack" as const,
      reason: "created" as const,
      createdAt,
    }));
    await cases.alerts.commit({ alerts: [alert], timeline: [], notifications });
  };

  test("are changed while the lease is held", async () => {
    await queued();
    expect(await held.notifications.begin("slack", newDeliveryId(), 1)).toHaveLength(1);
    expect(await held.notifications.recover(5)).toBe(1);
    sending = newDeliveryId();
    expect(await held.notifications.begin("slack", sending, 1)).toHaveLength(1);
    await cases.exports.put(job);
    expect(await held.exports.update({ ...job, status: "running" })).toBe(true);
    await held.retention.save({ ranAt: 7 });
    expect(await held.detection.begin(10)).toEqual([]);
    expect(await held.alerts.commit({ alerts: [newAlert()], timeline: [] })).toEqual([]);
  });

  test("are not changed once another has it", async () => {
    await cases.leases.release(lease);
    expect(await cases.leases.acquire("role", "two", LONG_MS)).toBeDefined();
    const before = await stateOf(cases);
    const alert = newAlert();
    const late: Record<string, () => Promise<unknown>> = {
      begin: () => held.notifications.begin("slack", newDeliveryId(), 1),
      settle: () => held.notifications.settle(sending, { status: "sent", error: null }, 9, []),
      recover: () => held.notifications.recover(9),
      "remove notifications": () => held.notifications.removeBefore(Number.MAX_SAFE_INTEGER),
      "update an export": () => held.exports.update({ ...job, status: "completed" }),
      "remove an export": () => held.exports.remove(job.id),
      "note retention": () => held.retention.save({ ranAt: 99 }),
      "begin detection": () => held.detection.begin(99),
      "commit alerts": () => held.alerts.commit({ alerts: [alert], timeline: [] }),
      "remove alerts": () => held.alerts.removeResolvedBefore(100, new AbortController().signal),
    };
    for (const [what, change] of Object.entries(late)) {
      await expect(change(), what).rejects.toBeInstanceOf(LeaseLost);
    }
    expect(await stateOf(cases)).toEqual(before);
    expect(await cases.alerts.get(alert.id)).toBeUndefined();
  });
});

async function stateOf(cases: AllPostgresCases) {
  const page = { mode: "page", page: 1, size: 100 } as const;
  return {
    notifications: await cases.notifications.list({}, page),
    exports: await cases.exports.list(),
    retention: await cases.retention.notes(),
    alerts: (await cases.alerts.list({}, page, "created_at", true)).total,
  };
}
