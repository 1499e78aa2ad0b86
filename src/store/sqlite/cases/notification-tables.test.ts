import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Channel } from "../../../model/rule.ts";
import { makeNotificationTables, NotificationTables } from "./notification-tables.ts";

const PAGE = { mode: "page", page: 1, size: 1000 } as const;

function open(limits: { waitingMax: number; sentMax: number; deadMax: number }) {
  const db = new DatabaseSync(":memory:");
  makeNotificationTables(db);
  const tables = new NotificationTables(db, limits);
  let created = 0;
  const add = (channel: Channel, count: number) =>
    tables.add(
      Array.from({ length: count }, () => ({
        id: `ntf_${++created}`,
        alertId: "alt_1",
        channel,
        reason: "created" as const,
        createdAt: created,
      })),
    );
  const settle = (status: "sent" | "dead") => {
    const deliveryId = `dlv_${++created}`;
    tables.begin("slack", deliveryId, 1);
    return tables.settle(deliveryId, status === "sent" ? { status, error: null } : { status, error: "no" }, 1);
  };
  const total = (filter: Parameters<typeof tables.list>[0]) => tables.list(filter, PAGE).total;
  return { tables, add, settle, total };
}

test("a notification past the queue limit is dead at once with its reason, and other channels are not affected", () => {
  const { tables, add, total } = open({ waitingMax: 3, sentMax: 10, deadMax: 10 });
  expect(add("slack", 2)).toBe(0);
  expect(add("slack", 3)).toBe(2);
  expect(add("email", 3)).toBe(0);
  expect([total({ status: "waiting" }), total({ status: "dead" })]).toEqual([6, 2]);
  expect(tables.get("ntf_5")).toMatchObject({ status: "dead", error: "more than 3 were waiting for the channel" });
  tables.begin("slack", "dlv_a", 10);
  expect(add("slack", 3)).toBe(0);
});

test("only the newest settled notifications are kept, sent and dead ones apart, and evicted ones are counted", () => {
  const { add, settle, total } = open({ waitingMax: 10_000, sentMax: 30, deadMax: 5 });
  add("slack", 500);
  let evicted = 0;
  for (let i = 0; i < 20; i++) evicted += settle("dead");
  for (let i = 0; i < 400; i++) evicted += settle("sent");
  const kept = [total({ status: "sent" }), total({ status: "dead" })];
  expect(kept[1]).toBe(5);
  // The limit is enforced once in many settlements, so a few more may be there until the next time.
  expect(kept[0]).toBeLessThanOrEqual(30 + 200);
  expect(evicted).toBe(420 - kept[0]! - kept[1]!);
  expect(total({ status: "waiting" })).toBe(80);
});

test("a file without missing recipients opens as it is, and stores them from then on", () => {
  const db = new DatabaseSync(":memory:");
  db.exec(`CREATE TABLE notifications(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, alert_id TEXT NOT NULL, channel TEXT NOT NULL,
      reason TEXT NOT NULL, status TEXT NOT NULL, delivery TEXT, is_repeat INTEGER NOT NULL, attempts INTEGER NOT NULL,
      created_at INTEGER NOT NULL, queued_at INTEGER NOT NULL, due_at INTEGER, settled_at INTEGER, error TEXT) STRICT;
    INSERT INTO notifications VALUES (1, 'ntf_1', 'alt_1', 'email', 'created', 'waiting', NULL, 0, 0, 1, 1, NULL, NULL, NULL);`);
  makeNotificationTables(db);
  const tables = new NotificationTables(db);
  expect(tables.begin("email", "dlv_1", 10)).toMatchObject([{ id: "ntf_1", untold: null }]);
  tables.settle(
    "dlv_1",
    { status: "waiting", error: "busy", dueAt: 5, isRepeat: false, untold: ["ben@example.org"] },
    2,
  );
  expect(new NotificationTables(db).get("ntf_1")).toMatchObject({ untold: ["ben@example.org"] });
});
