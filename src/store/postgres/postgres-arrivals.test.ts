import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import type { ArrivalLog, ArrivalRange } from "../ports/arrival-log.ts";
import { LeaseLost, type Lease, type LeaseStore } from "../ports/lease-store.ts";
import { postgresArrivals } from "./postgres-arrivals.ts";
import { openPostgres } from "./postgres-cases.ts";
import { postgresLeases } from "./postgres-leases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

describeWithPostgres("the log of arrivals in PostgreSQL", () => {
  const parts = new OpenedParts();
  let arrivals: ArrivalLog;
  let leases: LeaseStore;
  let lease: Lease;

  beforeAll(async () => {
    const settings = postgresSettings(await testDatabase());
    const options = { settings, registry: new Registry(), log: pino({ level: "silent" }) };
    const { database, listener } = await openPostgres(options, parts);
    arrivals = postgresArrivals(database, listener);
    leases = postgresLeases(database, listener);
    lease = (await leases.acquire("arrivals", "one", 60_000))!;
  });
  afterAll(() => parts.close());

  const on = (shard: number) => ({ index: "events-2026.05.01", incarnation: "u1", shard });
  const range = (shard: number, first: number, last: number): ArrivalRange => ({ ...on(shard), first, last });

  test("numbers rows without gaps, and its times never go back", async () => {
    expect(await arrivals.head()).toBeNull();
    expect(await arrivals.lastBefore(10_000)).toBeNull();
    await arrivals.add(
      lease,
      1000,
      [range(0, 0, 4), range(1, 0, 2)],
      [
        { ...on(0), next: 5 },
        { ...on(1), next: 3 },
      ],
    );
    await arrivals.add(lease, 900, [range(0, 5, 9)], [{ ...on(0), next: 12 }]);
    const rows = [
      { ...range(0, 0, 4), row: 1, atMs: 1000 },
      { ...range(1, 0, 2), row: 2, atMs: 1000 },
      { ...range(0, 5, 9), row: 3, atMs: 1000 },
    ];
    expect(await arrivals.rows(0, 10)).toEqual(rows);
    expect(await arrivals.rows(2, 1)).toEqual([rows[1]]);
    expect(await arrivals.rowsBack(2, 10)).toEqual([rows[1], rows[0]]);
    expect(await arrivals.head()).toEqual(rows[2]);
    expect(await arrivals.lastBefore(1001)).toEqual(rows[2]);
    expect(await arrivals.lastBefore(1000)).toBeNull();
    const positions = await arrivals.positions();
    expect(positions.toSorted((a, b) => a.shard - b.shard)).toEqual([
      { ...on(0), next: 12 },
      { ...on(1), next: 3 },
    ]);
  });

  test("positions move without rows", async () => {
    const head = await arrivals.head();
    await arrivals.add(lease, 2000, [], [{ ...on(1), next: 8 }]);
    expect(await arrivals.head()).toEqual(head);
    expect((await arrivals.positions()).find(({ shard }) => shard === 1)!.next).toBe(8);
  });

  test("nobody adds or removes after the lease is over", async () => {
    const before = await Promise.all([arrivals.rows(0, 10), arrivals.positions()]);
    await leases.release(lease);
    const next = (await leases.acquire("arrivals", "two", 60_000))!;
    await expect(arrivals.add(lease, 3000, [range(0, 12, 20)], [{ ...on(0), next: 21 }])).rejects.toThrow(LeaseLost);
    await expect(arrivals.prune(lease, 9000, [])).rejects.toThrow(LeaseLost);
    await expect(arrivals.rename(lease, "u1", "u2")).rejects.toThrow(LeaseLost);
    expect(await Promise.all([arrivals.rows(0, 10), arrivals.positions()])).toEqual(before);
    lease = next;
  });

  test("rows, positions and the head of a restored index get its new identity", async () => {
    const before = await Promise.all([arrivals.rows(0, 10), arrivals.positions(), arrivals.head()]);
    const { atMs } = before[0].at(-1)!;
    expect(await arrivals.lastOf("u1")).toBe(atMs);
    await arrivals.rename(lease, "u1", "u2");
    expect([await arrivals.lastOf("u1"), await arrivals.lastOf("u2")]).toEqual([null, atMs]);
    await arrivals.rename(lease, "u2", "u1");
    expect(await Promise.all([arrivals.rows(0, 10), arrivals.positions(), arrivals.head()])).toEqual(before);
  });

  test("removed rows leave the head and its number behind", async () => {
    const head = await arrivals.head();
    await arrivals.prune(lease, 5000, ["other"]);
    expect(await arrivals.rows(0, 10)).toEqual([]);
    expect(await arrivals.positions()).toEqual([]);
    expect(await arrivals.head()).toEqual(head);
    await arrivals.add(lease, 6000, [range(0, 30, 31)], [{ ...on(0), next: 32 }]);
    expect(await arrivals.rows(0, 10)).toMatchObject([{ row: head!.row + 1, atMs: 6000 }]);
  });

  test("tells of rows and of requests", async () => {
    const told = { added: 0, requested: 0 };
    const off = (["added", "requested"] as const).map((what) => arrivals.listen(what, () => told[what]++));
    await arrivals.request();
    // Notices come in order: those of earlier tests have come before this one.
    await expect.poll(() => told.requested).toBe(1);
    const before = told.added;
    await arrivals.add(lease, 7000, [range(0, 32, 32)], [{ ...on(0), next: 33 }]);
    await expect.poll(() => told).toEqual({ added: before + 1, requested: 1 });
    for (const stop of off) stop();
  });

  test("is replaced as a whole by that of copied events", async () => {
    const rows = [
      { ...range(2, 0, 9), row: 1, atMs: 10 },
      { ...range(3, 5, 7), row: 2, atMs: 20 },
    ];
    for (const written of [rows.slice(0, 1), rows]) {
      await arrivals.replace(written, [{ ...on(2), next: 11 }]);
      expect(await arrivals.rows(0, 10)).toEqual(written);
      expect(await arrivals.head()).toEqual(written.at(-1));
      expect(await arrivals.positions()).toEqual([{ ...on(2), next: 11 }]);
    }
  });
});
