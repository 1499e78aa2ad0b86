import { beforeAll, describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import { SYSTEM, type Alert, type TimelineEntry } from "../../model/alert.ts";
import type { NewNotification } from "../../model/notification.ts";
import type { Channel } from "../../model/rule.ts";
import { identifyDefinition, type IdentifiedDefinition } from "../../model/rule-definition.ts";
import { newAlert } from "./new-alert.ts";
import type { Settlement } from "../ports/notification-store.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about the removal of old alerts.

const newEntryId = idMaker("tln_");
const newNotificationId = idMaker("ntf_");
const newDeliveryId = idMaker("dlv_");
const CUT_MS = 1_000_000;
const OLD = { status: "resolved", resolution: "benign", resolvedAt: CUT_MS - 1 } as const;
const PAGE = { mode: "page", page: 1, size: 100 } as const;
const SENT: Settlement = { status: "sent", error: null };

export function removalContract({ store, reopen }: ContractContext): void {
  describe("alerts resolved long ago", () => {
    const remove = (signal = new AbortController().signal) => store().alerts.removeResolvedBefore(CUT_MS, signal);
    const ruleOf = (name: string) => ({ id: `rule_${name}`, name: `removal.${name}`, description: "", tags: [] });
    const entryAt = (at: number): TimelineEntry => ({ id: newEntryId(), at, actor: SYSTEM, kind: "reopened" });
    const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id).sort();
    const found = async (ruleName: string, search?: string) =>
      idsOf((await store().alerts.list({ ruleName: [ruleName], search }, PAGE, "created_at", true)).items);
    const commit = (alerts: readonly Alert[], channel?: Channel) => {
      const notifications = alerts.map(({ id }): NewNotification => {
        return { id: newNotificationId(), alertId: id, channel: channel!, reason: "created", createdAt: 1 };
      });
      const timeline = alerts.map(({ id }) => ({ alertId: id, entry: entryAt(1) }));
      return store().alerts.commit({ alerts, timeline, ...(channel && { notifications }) });
    };
    const send = async (channel: Channel, outcome: Settlement, deliveryId = newDeliveryId()) => {
      await store().notifications.begin(channel, deliveryId, 1000);
      await store().notifications.settle(deliveryId, outcome, 2, []);
    };
    const notificationsOf = async (alertId: string) => (await store().notifications.list({ alertId }, PAGE)).total;

    // Removes those of earlier tests.
    beforeAll(() => remove());

    test("are removed with definitions that no other alert refers to", async () => {
      const [shared, own] = ["a", "b"].map((path) =>
        identifyDefinition({
          source: "any",
          conditions: [{ field: `raw.removal_${path}`, exists: true }],
          window: null,
          threshold: null,
          sequence: null,
          sequenceOrder: "in_order",
          groupBy: null,
          absence: null,
        }),
      ) as [IdentifiedDefinition, IdentifiedDefinition];
      const rule = ruleOf("definitions");
      const alerts = [
        newAlert({ rule, ...OLD, definitionId: own.id }),
        newAlert({ rule, ...OLD, definitionId: shared.id }),
        newAlert({ rule, definitionId: shared.id }),
      ];
      await store().alerts.commit({ alerts, timeline: [], definitions: [shared, own] });
      expect(await remove()).toBe(2);
      expect(await store().alerts.definition(own.id)).toBeUndefined();
      expect(await store().alerts.definition(shared.id)).toBeDefined();
    });

    test("are removed with their events and tags, which later alerts do not inherit", async () => {
      const rule = ruleOf("events");
      const olderEvents = [{ id: "evt_older", timestampMs: 1 }];
      const old = Array.from({ length: 3 }, () => newAlert({ rule, ...OLD, tags: ["removed"] }));
      await store().alerts.commit({ alerts: old.map((alert) => ({ ...alert, olderEvents })), timeline: [] });
      expect(await remove()).toBe(old.length);
      const later = old.map(() => newAlert({ rule }));
      await commit(later);
      for (const { id, relatedEvents } of later) {
        const page = await store().alerts.events(id, { limit: 10, descending: true });
        expect(page!.events).toEqual(relatedEvents);
      }
      expect((await store().alerts.list({ tag: ["removed"] }, PAGE, "created_at", true)).total).toBe(0);
    });

    test("are permanently removed with all their data, and alerts that are unresolved or newer stay", async () => {
      const rule = ruleOf("removed");
      const old = { rule, createdAt: CUT_MS - 9, title: "Gate forced" };
      const oldAlerts = [
        newAlert({ ...old, ...OLD, assignee: "gone@example.com" }),
        newAlert({ ...old, ...OLD, createdAt: CUT_MS + 5 }),
      ];
      const keptAlerts = [
        newAlert(old),
        newAlert({ ...old, status: "acknowledged", firstAcknowledgedAt: CUT_MS - 8 }),
        newAlert({ ...old, ...OLD, resolvedAt: CUT_MS, resolution: "duplicate" }),
      ];
      await commit([...oldAlerts, ...keptAlerts], "slack");
      await send("slack", SENT);
      expect(await remove()).toBe(oldAlerts.length);
      const check = async () => {
        const { alerts } = store();
        expect(await alerts.getMany(idsOf(oldAlerts))).toEqual([null, null]);
        for (const { id } of oldAlerts) {
          expect([await alerts.get(id), await alerts.withTimeline(id), await notificationsOf(id)]).toEqual([
            undefined,
            undefined,
            0,
          ]);
        }
        for (const alert of keptAlerts) {
          const { timeline } = (await alerts.withTimeline(alert.id))!;
          expect([await alerts.get(alert.id), timeline.length, await notificationsOf(alert.id)]).toEqual([alert, 1, 1]);
        }
        expect(await found(rule.name)).toEqual(idsOf(keptAlerts));
        expect(await found(rule.name, "gate forced")).toEqual(idsOf(keptAlerts));
        expect(await found(rule.name, "gone@example.com")).toEqual([]);
        expect(await alerts.totals({ fromMs: CUT_MS - 9, toMs: CUT_MS + 9 })).toMatchObject({
          total: 3,
          byStatus: { open: 1, acknowledged: 1, resolved: 1 },
          acknowledgeMs: 1,
          resolveMs: 9,
        });
        expect(await alerts.resolutions(rule.name)).toMatchObject({ benign: 0, duplicate: 1 });
      };
      await check();
      await reopen();
      await check();
      expect(await remove()).toBe(0);
    });

    test("leave nothing to an alert that reuses their slot", async () => {
      const rule = ruleOf("place");
      const entity = { kind: "camera", value: "Yard", count: 1 } as const;
      const before = newAlert({ ...OLD, rule, title: "Camera dark", assignee: "mia@example.com", entities: [entity] });
      await commit([before]);
      await store().alerts.commit({ alerts: [], timeline: [{ alertId: before.id, entry: entryAt(2) }] });
      expect(await remove()).toBe(1);
      const after = newAlert({ rule, title: "Door held", relatedEvents: [] });
      await commit([after]);
      expect(await store().alerts.get(after.id)).toEqual(after);
      expect((await store().alerts.withTimeline(after.id))!.timeline).toHaveLength(1);
      for (const word of ["camera", "dark", "mia"]) expect(await found(rule.name, word), word).toEqual([]);
      expect(await found(rule.name, "door")).toEqual([after.id]);
      for (const filter of [{ entity: [entity] }, { eventId: before.relatedEvents.map(({ id }) => id) }]) {
        const page = { mode: "page", page: 1, size: 5 } as const;
        const { total } = await store().alerts.list({ ruleName: [rule.name], ...filter }, page, "created_at", true);
        expect(total).toBe(0);
      }
      expect(await store().alerts.get(before.id)).toBeUndefined();
    });

    test("stay while they have pending notifications, and are removed once those are sent or dead", async () => {
      const alerts = [newAlert(OLD), newAlert(OLD)];
      const ids = alerts.map(({ id }) => id);
      const exist = async () => (await store().alerts.getMany(ids)).map((alert) => alert !== null);
      for (const [i, alert] of alerts.entries()) await commit([alert], i === 0 ? "slack" : "email");
      expect(await remove()).toBe(0);
      const deliveryId = newDeliveryId();
      await send("slack", { status: "waiting", error: "busy", dueAt: 9, isRepeat: false }, deliveryId);
      expect(await remove()).toBe(0);
      await store().notifications.beginAgain(deliveryId);
      await reopen();
      expect(await remove()).toBe(0);
      expect(await exist()).toEqual([true, true]);
      await store().notifications.settle(deliveryId, SENT, 3, [{ alertId: ids[0]!, entry: entryAt(3) }]);
      expect(await remove()).toBe(1);
      expect(await exist()).toEqual([false, true]);
      await send("email", { status: "dead", error: "refused" });
      expect(await remove()).toBe(1);
      // A removed alert has no notifications.
      expect(await store().notifications.list({ alertId: ids[1]! }, PAGE)).toMatchObject({ total: 0 });
    });

    test("cannot be changed once they are removed", async () => {
      const alert = newAlert(OLD);
      await commit([alert]);
      const reopened = { ...alert, status: "open", resolvedAt: null, resolution: null, version: 2 } as const;
      const [removed, conflicts] = await Promise.all([remove(), commit([reopened])]);
      expect([removed, conflicts]).toEqual([1, [alert.id]]);
      expect(await store().alerts.get(alert.id)).toBeUndefined();
    });

    test("stay if they are reopened just before", async () => {
      const alert = newAlert(OLD);
      await commit([alert]);
      const reopened = { ...alert, status: "open", resolvedAt: null, resolution: null, version: 2 } as const;
      const [conflicts, removed] = await Promise.all([commit([reopened]), remove()]);
      expect([conflicts, removed]).toEqual([[], 0]);
      expect(await store().alerts.get(alert.id)).toEqual(reopened);
    });

    test("do not take change numbers with them: these continue", async () => {
      await commit([newAlert(OLD)]);
      const last = await store().alerts.lastChange();
      expect(await remove()).toBe(1);
      await reopen();
      expect(await store().alerts.lastChange()).toBe(last);
      const alert = newAlert();
      await commit([alert]);
      expect(await store().alerts.changedSince(last, 10)).toMatchObject([
        { change: last + 1, alert: { id: alert.id } },
      ]);
    });

    test("are removed in batches: other calls are answered in between, and a stopped removal leaves whole alerts for the next", async () => {
      const rule = ruleOf("many");
      const alerts = Array.from({ length: 1000 }, (_, i) => newAlert({ ...OLD, rule, title: `Number n${i} of many` }));
      for (let i = 0; i < alerts.length; i += 100) await commit(alerts.slice(i, i + 100));
      const count = async () => (await store().alerts.list({ ruleName: [rule.name] }, PAGE, "created_at", true)).total;
      const stop = new AbortController();
      const removing = remove(stop.signal);
      await expect.poll(count, { interval: 1 }).toBeLessThan(alerts.length);
      const added = newAlert({ rule, title: "Number added" });
      expect(await commit([added])).toEqual([]);
      stop.abort();
      const removed = await removing;
      expect(removed).toBeGreaterThan(0);
      expect(removed).toBeLessThan(alerts.length);
      await reopen();
      expect(await count()).toBe(alerts.length - removed + 1);
      const left = await store().alerts.getMany(alerts.map(({ id }) => id));
      for (const [i, { id }] of alerts.entries()) {
        const isLeft = left[i] !== null;
        expect(await found(rule.name, `n${i}`).then((ids) => ids.includes(id))).toBe(isLeft);
        expect((await store().alerts.withTimeline(id))?.timeline.length).toBe(isLeft ? 1 : undefined);
      }
      expect(await remove(AbortSignal.abort())).toBe(0);
      expect(await remove()).toBe(alerts.length - removed);
      expect(await found(rule.name)).toEqual([added.id]);
      expect(await found(rule.name, "number")).toEqual([added.id]);
    });
  });
}
