import { beforeAll, describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { Alert, Comment, TimelineEntry } from "../../model/alert.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert } from "./new-alert.ts";

// The part of the contract about the work on alerts in a range.

const BASE = 70 * DAY_MS;
const newEntryId = idMaker("tln_");
const NO_SEVERITY = { critical: 0, high: 0, medium: 0, low: 0, info: 0 };

export function alertWorkContract({ store, reopen }: ContractContext): void {
  const at = (createdAt: number, more: Partial<Alert> = {}) => newAlert({ createdAt: BASE + createdAt, ...more });
  const resolvedAt = (ms: number) =>
    ({ status: "resolved", resolvedAt: BASE + ms, resolution: "benign" }) as const satisfies Partial<Alert>;
  const acknowledgedAt = (ms: number) =>
    ({ status: "acknowledged", acknowledgedAt: BASE + ms, firstAcknowledgedAt: BASE + ms }) as const;
  const happened = (ms: number, actor: string) => ({ id: newEntryId(), at: BASE + ms, actor });
  const comment = (ms: number, body: string): Comment => ({
    id: `cmt_${ms}`,
    body,
    author: "eva",
    createdAt: BASE + ms,
  });

  describe("work on alerts", () => {
    const before = at(-50, resolvedAt(-10));
    const carriedOver = at(-40, { ...acknowledgedAt(-20), ...resolvedAt(20), resolution: "true_positive" });
    const seen = at(0, { ...acknowledgedAt(10), severity: "critical" });
    const closedUnseen = at(10, { ...resolvedAt(20), resolution: "false_positive", severity: "low" });
    const reopened = at(20, { firstAcknowledgedAt: BASE + 30, status: "open" });
    const later = at(30, resolvedAt(100));
    const waiting = at(40, { severity: "info" });
    const range = { fromMs: BASE, toMs: BASE + 100 };

    beforeAll(async () => {
      const entries: [Alert, TimelineEntry][] = [
        [carriedOver, { ...happened(-20, "anna"), kind: "acknowledged", assignee: null }],
        [carriedOver, { ...happened(5, "eva"), kind: "commented", comment: comment(5, "first") }],
        [carriedOver, { ...happened(6, "eva"), kind: "commented", comment: comment(6, "second") }],
        [carriedOver, { ...happened(20, "eva"), kind: "resolved", resolution: "true_positive", actionsTaken: [] }],
        [seen, { ...happened(10, "anna"), kind: "acknowledged", assignee: null }],
        [seen, { ...happened(15, "ben"), kind: "acknowledged", assignee: "ben@example.com" }],
      ];
      await store().alerts.commit({
        alerts: [before, carriedOver, seen, closedUnseen, reopened, later, waiting],
        timeline: entries.map(([alert, entry]) => ({ alertId: alert.id, entry })),
      });
    });

    const works = async () => {
      // Other parts of the contract leave unresolved alerts of other times.
      const others = await store().alerts.work({ fromMs: BASE + DAY_MS, toMs: BASE + 2 * DAY_MS, limit: 0 });
      const { unresolved, ...work } = await store().alerts.work({ ...range, limit: 10 });
      expect(others.handled).toEqual({ total: 0, items: [] });
      expect(others.firstLookMs).toBeNull();
      expect(others.unresolved).toEqual(unresolved);
      expect(work.acknowledged).toEqual({ total: 2, bySeverity: { ...NO_SEVERITY, critical: 1, high: 1 } });
      expect(work.resolved).toEqual({ total: 2, bySeverity: { ...NO_SEVERITY, high: 1, low: 1 } });
      expect(work.resolutions).toEqual({ true_positive: 1, false_positive: 1, benign: 0, duplicate: 0 });
      expect(work.firstLookMs).toBe(10);
      expect(work.resolveMs).toBe(35);
      const rows = work.handled.items.map(({ alert, kind, at, actor }) => [alert.id, kind, at - BASE, actor]);
      expect(rows).toEqual([
        [reopened.id, "acknowledged", 30, null],
        [closedUnseen.id, "resolved", 20, null],
        [carriedOver.id, "resolved", 20, "eva"],
        [seen.id, "acknowledged", 10, "anna"],
      ]);
      expect(work.handled.items.map(({ lastComment }) => lastComment)).toEqual([
        null,
        null,
        comment(6, "second"),
        null,
      ]);
      const { relatedEvents, ...summary } = carriedOver;
      expect(relatedEvents).toBeDefined();
      expect(work.handled.items[2]!.alert).toEqual(summary);
    };

    test("alerts count by the times at which they were acknowledged and resolved", works);

    test("the same after a restart", async () => {
      await reopen();
      await works();
    });

    test("a limit keeps the last handled, and the number of all", async () => {
      const { handled } = await store().alerts.work({ ...range, limit: 2 });
      expect(handled.total).toBe(4);
      expect(handled.items.map(({ alert }) => alert.id)).toEqual([reopened.id, closedUnseen.id]);
    });

    test("what was unresolved when the range began is counted, and what is unresolved now", async () => {
      const now = await store().alerts.work({ ...range, limit: 0 });
      const early = await store().alerts.work({ ...range, fromMs: BASE - 50, limit: 0 });
      // `before` was created at the start of the earlier range; `carriedOver` was not resolved yet when the later one began.
      expect(now.unresolvedBefore - early.unresolvedBefore).toBe(1);
      await store().alerts.commit({ alerts: [{ ...waiting, ...acknowledgedAt(200), version: 2 }], timeline: [] });
      const after = await store().alerts.work({ ...range, limit: 0 });
      expect(after.unresolved).toEqual(now.unresolved);
      expect(after.unacknowledged).toBe(now.unacknowledged - 1);
      await store().alerts.commit({ alerts: [{ ...waiting, ...resolvedAt(300), version: 3 }], timeline: [] });
      const { unresolved } = await store().alerts.work({ ...range, limit: 0 });
      expect(unresolved.total).toBe(now.unresolved.total - 1);
      expect(unresolved.bySeverity.info).toBe(now.unresolved.bySeverity.info - 1);
    });
  });
}
