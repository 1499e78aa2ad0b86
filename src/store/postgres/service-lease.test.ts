import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { options } from "../embedded/embedded-store.fixture.ts";
import { openStore } from "../open-store.ts";
import { LeaseLost, type LeaseStore } from "../ports/lease-store.ts";
import { openPostgresCases } from "./postgres-cases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";
import { DatabaseInUse, holdServiceLease } from "./service-lease.ts";

const log = pino({ level: "silent" });
const SHORT_MS = 600;

describeWithPostgres("a service on PostgreSQL", () => {
  const opened = new OpenedParts();
  let url: string;
  let leases: LeaseStore;
  beforeAll(async () => {
    url = await testDatabase();
    ({ leases } = await openPostgresCases({ settings: postgresSettings(url), registry: new Registry(), log }, opened));
  });
  afterAll(() => opened.close());

  const hold = (holder: string, onLost: (error: Error) => void = () => undefined, ttlMs = SHORT_MS) =>
    holdServiceLease({ leases, holder, onLost, log, ttlMs });

  test("is alone: another one is refused while it lives, and may begin once it has stopped", async () => {
    const first = await hold("one:/data");
    await expect(hold("two:/data")).rejects.toThrow(new DatabaseInUse("one:/data"));
    await first.close();
    const second = await hold("two:/data");
    expect(second.lease.epoch).toBeGreaterThan(first.lease.epoch);
    await second.close();
  });

  test("that ended without a word is followed by another when its lease is over, and by itself at once", async () => {
    const gone = await leases.acquire("service", "one:/data", 60_000);
    const again = await hold("one:/data");
    expect(again.lease.epoch).toBeGreaterThan(gone!.epoch);
    await again.close();
    await leases.acquire("service", "one:/data", SHORT_MS);
    const other = await hold("two:/data");
    await other.close();
  });

  test("learns that another one has taken the database", async () => {
    const lost = Promise.withResolvers<Error>();
    const first = await hold("one:/data", lost.resolve);
    await leases.release(first.lease);
    const second = await leases.acquire("service", "two:/data", 60_000);
    expect(await lost.promise).toEqual(new DatabaseInUse("two:/data"));
    await first.close();
    expect(await leases.current("service")).toMatchObject({ holder: "two:/data", epoch: second!.epoch });
    await leases.release(second!);
  });

  test("commits no progress of detection once another one has the database", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "tocsin-lease-"));
    const store = await openStore({ ...options(dataDir, Date.now), postgres: postgresSettings(url) });
    const detected = (upTo: string) => ({ alerts: [], timeline: [], detected: { upTo, matches: [], seen: [] } });
    try {
      await store.alerts.commit(detected("evt_1"));
      const current = (await leases.current("service"))!;
      await leases.release(current);
      const other = (await leases.acquire("service", "two:/data", 60_000))!;
      await expect(store.alerts.commit(detected("evt_2"))).rejects.toThrow(LeaseLost);
      expect(await store.detection.position()).toBe("evt_1");
      await leases.release(other);
    } finally {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
