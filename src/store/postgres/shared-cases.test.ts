import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import type { ApiKey } from "../../model/key.ts";
import type { Session } from "../../model/session.ts";
import { LeaseLost } from "../ports/lease-store.ts";
import { openPostgresCases, type PostgresCases } from "./postgres-cases.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { requireEpoch } from "./postgres-leases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// Two nodes on one database.

const log = pino({ level: "silent" });
const LONG_MS = 600_000;

describeWithPostgres("nodes that share PostgreSQL", () => {
  const opened = new OpenedParts();
  let here: PostgresCases;
  let there: PostgresCases;
  let database: PostgresDatabase;

  beforeAll(async () => {
    const settings = postgresSettings(await testDatabase());
    [here, there] = (await Promise.all(
      [1, 2].map(() => openPostgresCases({ settings, registry: new Registry(), log }, opened)),
    )) as [PostgresCases, PostgresCases];
    database = new PostgresDatabase({ settings, registry: new Registry(), log });
    opened.add(() => database.close());
  });
  afterAll(() => opened.close());

  const key = (id: string): ApiKey => ({
    id,
    name: id,
    scopes: ["events:read"],
    plan: "pro",
    createdAt: 1,
    expiresAt: null,
    revokedAt: null,
    secretHash: new Uint8Array([1]),
    previous: [],
  });
  /** The connections that receive notices. */
  const listeners = () =>
    database.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT extract(epoch%')",
    );

  test("a key that one revokes is known to be revoked at the other within a second", async () => {
    await here.keys.put(key("key_1"));
    expect(await there.keys.find("key_1")).toMatchObject({ revokedAt: null });
    expect(await there.keys.find("key_1"), "from the cache").toMatchObject({ revokedAt: null });
    await here.keys.change("key_1", (known) => ({ ...known, revokedAt: 5 }));
    expect(await here.keys.find("key_1")).toMatchObject({ revokedAt: 5 });
    await sleep(1000);
    expect(await there.keys.find("key_1")).toMatchObject({ revokedAt: 5 });
    await here.keys.remove(["key_1"]);
    await sleep(1000);
    expect(await there.keys.find("key_1")).toBeUndefined();
  });

  test("the same holds while the connections that receive notices are cut again and again", async () => {
    await here.keys.put(key("key_2"));
    for (let revision = 1; revision <= 5; revision++) {
      await there.keys.find("key_2");
      for (const { pid } of await listeners()) await database.query("SELECT pg_terminate_backend($1)", [pid]);
      await here.keys.change("key_2", (known) => ({ ...known, name: `revision ${revision}` }));
      await sleep(1000);
      expect(await there.keys.find("key_2")).toMatchObject({ name: `revision ${revision}` });
    }
  });

  test("a session that ends at one ends at the other, and so do those of a removed key", async () => {
    const session = (byte: number): Session => ({
      idHash: new Uint8Array(32).fill(byte),
      keyId: "key_3",
      secretHash: new Uint8Array([1]),
      createdAt: 1,
      lastUsedAt: 1,
    });
    for (const byte of [1, 2]) await here.sessions.add(session(byte), { perKeyMax: 9, max: 9 });
    expect(await there.sessions.find(session(1).idHash)).toEqual(session(1));
    expect(await there.sessions.find(session(2).idHash)).toEqual(session(2));
    await here.sessions.remove(session(1).idHash);
    await here.sessions.touch(session(2).idHash, 7);
    await sleep(1000);
    expect(await there.sessions.find(session(1).idHash)).toBeUndefined();
    expect(await there.sessions.find(session(2).idHash)).toEqual({ ...session(2), lastUsedAt: 7 });
    await here.keys.remove(["key_3"]);
    await sleep(1000);
    expect(await there.sessions.find(session(2).idHash)).toBeUndefined();
  });

  test("a release at one is heard at the other", async () => {
    const released: string[] = [];
    const stop = there.leases.onRelease((name) => released.push(name));
    await here.leases.release((await here.leases.acquire("shared", "a", LONG_MS))!);
    await expect.poll(() => released).toContain("shared");
    stop();
  });

  test("what a transaction commits under a lease is committed before anybody else can acquire it", async () => {
    const lease = (await here.leases.acquire("fenced", "a", 1))!;
    await sleep(20);
    const order: string[] = [];
    let acquiring: Promise<unknown> | undefined;
    await database.transact(async (transaction) => {
      await requireEpoch(transaction, lease);
      acquiring = there.leases
        .acquire("fenced", "b", LONG_MS)
        .then((acquired) => order.push(`epoch ${acquired?.epoch}`));
      await sleep(200);
      order.push("committing");
    });
    await acquiring;
    expect(order).toEqual(["committing", `epoch ${lease.epoch + 1}`]);
    const late = database.transact(async (transaction) => {
      await transaction.run("INSERT INTO facts(name, value) VALUES ('late', 1)");
      await requireEpoch(transaction, lease);
    });
    await expect(late).rejects.toThrow(LeaseLost);
    expect(await database.query("SELECT 1 FROM facts WHERE name = 'late'")).toEqual([]);
  });

  test("a holder that stops in the middle of a transaction loses it, and the lease can be acquired", async () => {
    const lease = (await here.leases.acquire("paused", "a", 1))!;
    const { promise: held, resolve: resume } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const stuck = database.transact(async (transaction) => {
      await requireEpoch(transaction, lease);
      await transaction.run("INSERT INTO facts(name, value) VALUES ('stuck', 1)");
      begin();
      await held;
      await transaction.query("SELECT 1");
    });
    await begun;
    const acquired = await there.leases.acquire("paused", "b", LONG_MS);
    expect(acquired?.epoch).toBe(lease.epoch + 1);
    resume();
    await expect(stuck).rejects.toMatchObject({ name: "StoreUnavailable", reason: "unreachable" });
    expect(await database.query("SELECT 1 FROM facts WHERE name = 'stuck'")).toEqual([]);
  });

  test("a lease that a faster clock wrote is over: its expiry lies beyond its time to live", async () => {
    await here.leases.acquire("skewed", "a", 5000);
    await database.run("UPDATE leases SET expires_at = expires_at + interval '1 hour' WHERE name = 'skewed'");
    expect(await there.leases.acquire("skewed", "b", 5000)).toMatchObject({ holder: "b", epoch: 2 });
  });

  test("limits hold when both nodes add at once", async () => {
    const view = (id: string) => ({
      id,
      owner: "key_a",
      ownerName: "ann",
      screen: "alerts" as const,
      name: id,
      search: "",
      columns: null,
      density: null,
      grouping: null,
      shared: false,
      position: 0,
      createdAt: 1,
      updatedAt: 1,
      revision: 1,
    });
    const ids = Array.from({ length: 8 }, (_, i) => `view_${i}`);
    const outcomes = await Promise.all(
      ids.map((id, i) => (i % 2 === 0 ? here : there).views.add(view(id), { perKeyMax: 5, sharedMax: 5 })),
    );
    expect(outcomes.filter((outcome) => outcome === "key_full")).toHaveLength(3);
    const { views } = await here.views.list({ keyId: "key_a" }, 1, 100);
    expect(views.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4]);
  });
});
