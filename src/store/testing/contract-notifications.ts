import { describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import { SYSTEM, type TimelineEntry } from "../../model/alert.ts";
import type { NewNotification, NotificationReason } from "../../model/notification.ts";
import type { Channel } from "../../model/rule.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert } from "./new-alert.ts";

// The part of the contract about notifications and the tokens that analyses have used.

const newId = idMaker("ntf_");
const newDeliveryId = idMaker("dlv_");
const newEntryId = idMaker("tln_");
const PAGE = { mode: "page", page: 1, size: 100 } as const;

export function notificationsContract({ store, reopen }: ContractContext): void {
  const commit = async (
    channel: Channel,
    times: readonly number[],
    { alert = newAlert(), reason = "created" as NotificationReason } = {},
  ) => {
    const notifications = times.map((createdAt): NewNotification => ({
      id: newId(),
      alertId: alert.id,
      channel,
      reason,
      createdAt,
    }));
    expect(await store().alerts.commit({ alerts: [alert], timeline: [], notifications })).toEqual([]);
    return { alert, notifications };
  };
  const stateOf = async (id: string) => {
    const { status, attempts, isRepeat, dueAt, error } = (await store().notifications.get(id))!;
    return { status, attempts, isRepeat, dueAt, error };
  };
  const idsOf = (list: readonly { id: string }[]) => list.map(({ id }) => id);
  /** Empties the queue of notifications from earlier tests. */
  const clear = async (channel: Channel) => {
    const { notifications } = store();
    for (;;) {
      const { freshSince, retry } = await notifications.backlog(channel, 0, 0);
      const deliveryId = freshSince === null ? retry?.deliveryId : newDeliveryId();
      if (deliveryId === undefined) return;
      if (freshSince === null) await notifications.beginAgain(deliveryId);
      else await notifications.begin(channel, deliveryId, 1000);
      await notifications.settle(deliveryId, { status: "sent", error: null }, 1, []);
    }
  };

  describe("notifications", () => {
    test("are stored together with their alert, or not at all", async () => {
      const { alert, notifications } = await commit("slack", [10]);
      const lost = { ...notifications[0]!, id: newId() };
      expect(await store().alerts.commit({ alerts: [alert], timeline: [], notifications: [lost] })).toEqual([alert.id]);
      expect(await store().notifications.get(lost.id)).toBeUndefined();
      await reopen();
      expect(await store().notifications.get(notifications[0]!.id)).toEqual({
        ...notifications[0],
        status: "waiting",
        deliveryId: null,
        attempts: 0,
        isRepeat: false,
        untold: null,
        queuedAt: 10,
        dueAt: null,
        settledAt: null,
        error: null,
      });
    });

    test("a delivery takes the oldest of a channel, is durable, and is settled as a whole", async () => {
      await clear("slack");
      await commit("email", [1]);
      const { alert, notifications } = await commit("slack", [30, 10, 20]);
      const [a, b, c] = idsOf(notifications);
      expect(await store().notifications.backlog("slack", 15, 99)).toEqual({
        freshSince: 10,
        recent: expect.any(Number),
        retry: null,
      });
      const deliveryId = newDeliveryId();
      const sending = await store().notifications.begin("slack", deliveryId, 2);
      expect(idsOf(sending)).toEqual([b, c]);
      expect(sending[0]).toMatchObject({ status: "sending", deliveryId, attempts: 1 });
      await reopen();
      expect((await store().notifications.get(b!))!.status).toBe("sending");
      const entry: TimelineEntry = {
        id: newEntryId(),
        at: 40,
        actor: SYSTEM,
        kind: "notified",
        channel: "slack",
        outcome: "sent",
        reason: "created",
      };
      await store().notifications.settle(deliveryId, { status: "sent", error: null }, 40, [
        { alertId: alert.id, entry },
      ]);
      expect(await store().notifications.get(c!)).toMatchObject({ status: "sent", settledAt: 40 });
      expect((await store().notifications.get(a!))!.status).toBe("waiting");
      expect((await store().alerts.withTimeline(alert.id))!.timeline).toEqual([entry]);
      expect(await store().notifications.begin("webhook", newDeliveryId(), 10)).toEqual([]);
    });

    test("a retry comes when it is due, and of those due the one with the fewest attempts", async () => {
      await clear("slack");
      const { notifications } = store();
      const fail = async (dueAt: number, deliveryId: string) => {
        const outcome = { status: "waiting", error: "busy", dueAt, isRepeat: false } as const;
        await notifications.settle(deliveryId, outcome, 5, []);
      };
      const deliveryIds: string[] = [];
      for (const time of [1, 2]) {
        await commit("slack", [time]);
        deliveryIds.push(newDeliveryId());
        await notifications.begin("slack", deliveryIds.at(-1)!, 10);
        await fail(100 * time, deliveryIds.at(-1)!);
      }
      const [first, second] = deliveryIds;
      expect((await notifications.backlog("slack", 0, 50)).retry).toEqual({ deliveryId: first, dueAt: 100 });
      expect((await notifications.backlog("slack", 0, 500)).retry).toEqual({ deliveryId: first, dueAt: 100 });
      const [again] = await notifications.beginAgain(first!);
      expect(again).toMatchObject({ attempts: 2, status: "sending", deliveryId: first, error: "busy" });
      await fail(150, first!);
      expect((await notifications.backlog("slack", 0, 500)).retry!.deliveryId).toBe(second);
      expect((await notifications.backlog("slack", 0, 160)).retry!.deliveryId).toBe(first);
    });

    test("recipients who have not received a message are kept between attempts, after a restart and for a resend", async () => {
      await clear("email");
      const { notifications } = await commit("email", [1]);
      const { id } = notifications[0]!;
      const deliveryId = newDeliveryId();
      const waiting = { status: "waiting", error: "busy", dueAt: 10, isRepeat: false } as const;
      await store().notifications.begin("email", deliveryId, 10);
      await store().notifications.settle(deliveryId, { ...waiting, untold: ["ben@example.org"] }, 5, []);
      await reopen();
      const again = async () => (await store().notifications.beginAgain(deliveryId)).map(({ untold }) => untold);
      expect(await again()).toEqual([["ben@example.org"]]);
      await store().notifications.settle(deliveryId, waiting, 5, []);
      expect(await again()).toEqual([["ben@example.org"]]);
      await store().notifications.settle(deliveryId, { status: "dead", error: "no" }, 20, []);
      await commit("email", [2]);
      expect(await store().notifications.resend({ id }, 30)).toBe(1);
      // It does not join a delivery to all recipients.
      expect((await store().notifications.backlog("email", 0, 40)).retry).toEqual({ deliveryId, dueAt: 30 });
      expect(idsOf(await store().notifications.begin("email", newDeliveryId(), 10))).not.toContain(id);
      expect(await again()).toEqual([["ben@example.org"]]);
      await clear("email");
    });

    test("only deliveries in flight when the process ended are retried as repeats", async () => {
      await clear("email");
      const { notifications } = await commit("email", [1]);
      await store().notifications.begin("email", newDeliveryId(), 10);
      const waiting = await commit("email", [2]);
      await reopen();
      expect(await store().notifications.recover(77)).toBeGreaterThan(0);
      expect(await store().notifications.recover(78)).toBe(0);
      expect(await stateOf(notifications[0]!.id)).toMatchObject({ status: "waiting", isRepeat: true, dueAt: 77 });
      expect(await stateOf(waiting.notifications[0]!.id)).toMatchObject({ isRepeat: false });
    });

    test("recent messages are those that were settled since a time, or are not settled", async () => {
      await clear("webhook");
      await commit("webhook", [1, 2, 3, 4]);
      const [old, sent, sending] = [newDeliveryId(), newDeliveryId(), newDeliveryId()];
      for (const [deliveryId, at] of [
        [old, 100],
        [sent, 200],
      ] as const) {
        await store().notifications.begin("webhook", deliveryId, 1);
        await store().notifications.settle(deliveryId, { status: "sent", error: null }, at, []);
      }
      await store().notifications.begin("webhook", sending, 2);
      expect(await store().notifications.recentDeliveries("webhook", 200)).toEqual([
        { deliveryId: sending, settledAt: null },
        { deliveryId: sent, settledAt: 200 },
      ]);
      expect(await store().notifications.recentDeliveries("slack", Number.MAX_SAFE_INTEGER)).not.toContainEqual(
        expect.objectContaining({ deliveryId: sending }),
      );
      await store().notifications.settle(sending, { status: "sent", error: null }, 300, []);
    });

    test("dead ones can be queued again, one or all of a channel; others cannot", async () => {
      await clear("email");
      const { notifications } = await commit("email", [1, 2, 3]);
      const [a, b] = idsOf(notifications);
      const deliveryId = newDeliveryId();
      await store().notifications.begin("email", deliveryId, 3);
      const resend = (which: { id: string } | { channel: Channel }) => store().notifications.resend(which, 50);
      expect(await resend({ id: a! })).toBe(0);
      await store().notifications.settle(deliveryId, { status: "dead", error: "no such user" }, 9, []);
      expect(await stateOf(a!)).toMatchObject({ status: "dead", error: "no such user" });
      let notified = 0;
      const stop = store().notifications.onQueued(() => notified++);
      expect(await resend({ id: a! })).toBe(1);
      expect(await resend({ id: a! })).toBe(0);
      expect(await resend({ id: "ntf_0" })).toBe(0);
      expect(await resend({ channel: "email" })).toBe(2);
      stop();
      expect(notified).toBe(2);
      expect(await store().notifications.get(b!)).toMatchObject({ status: "waiting", queuedAt: 50, createdAt: 2 });
      expect((await store().notifications.backlog("email", 0, 99)).freshSince).toBe(50);
    });

    test("are listed newest first with every filter, by pages and by cursor", async () => {
      await clear("webhook");
      const { alert, notifications } = await commit("webhook", [1, 2, 3, 4, 5]);
      const newest = idsOf(notifications).toReversed();
      const { list } = store().notifications;
      expect(idsOf((await list({ alertId: alert.id }, PAGE)).items)).toEqual(newest);
      const page = await list({ alertId: alert.id, channel: "webhook" }, { mode: "page", page: 2, size: 2 });
      expect([idsOf(page.items), page.total, page.nextCursor]).toEqual([newest.slice(2, 4), 5, null]);
      const from = await list({ alertId: alert.id }, { mode: "cursor", after: newest[1], size: 2 });
      expect([idsOf(from.items), from.total, from.nextCursor]).toEqual([newest.slice(2, 4), 5, newest[3]]);
      const end = await list({ alertId: alert.id }, { mode: "cursor", after: newest[3], size: 2 });
      expect([idsOf(end.items), end.nextCursor]).toEqual([newest.slice(4), null]);
      expect((await list({ alertId: alert.id, status: "dead" }, PAGE)).total).toBe(0);
      expect((await list({ alertId: alert.id, channel: "slack" }, PAGE)).total).toBe(0);
      await expect(list({}, { mode: "cursor", after: "ntf_0", size: 2 })).rejects.toThrow(QueryRefused);
      const counted = (await store().notifications.counts()).find(
        ({ channel, status }) => channel === "webhook" && status === "waiting",
      );
      expect(counted!.count).toBe((await list({ channel: "webhook", status: "waiting" }, PAGE)).total);
    });

    test("old sent and dead ones are removed; waiting ones stay", async () => {
      await clear("webhook");
      const old = await commit("webhook", [1, 2]);
      const deliveryId = newDeliveryId();
      await store().notifications.begin("webhook", deliveryId, 1);
      await store().notifications.settle(deliveryId, { status: "dead", error: "x" }, 1000, []);
      expect(await store().notifications.removeBefore(1001)).toBeGreaterThan(0);
      expect(await store().notifications.get(old.notifications[0]!.id)).toBeUndefined();
      expect(await stateOf(old.notifications[1]!.id)).toMatchObject({ status: "waiting" });
    });

    test("listeners are called for commits with notifications, and only for those", async () => {
      let notified = 0;
      const stop = store().notifications.onQueued(() => notified++);
      await commit("slack", []);
      expect(notified).toBe(0);
      await commit("slack", [1, 2]);
      stop();
      await commit("slack", [3]);
      expect(notified).toBe(1);
    });
  });
}
