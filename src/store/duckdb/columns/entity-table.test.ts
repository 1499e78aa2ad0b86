import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import type { EntityMatches } from "../../../model/entity-query.ts";
import type { JsonObject } from "../../../model/event.ts";
import { options } from "../../embedded/embedded-store.fixture.ts";
import { openStore } from "../../open-store.ts";
import { columnsFile } from "../../files/layout.ts";
import type { Store } from "../../ports/store.ts";

const DAY = startOfDay(Date.UTC(2026, 5, 10));

async function withFolder(): Promise<{ dataDir: string; open: () => Promise<Store> }> {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-entities-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  return { dataDir, open: () => openStore(options(dataDir)) };
}

const append = (store: Store, raws: readonly JsonObject[], timestampMs = DAY) =>
  store.events.append(
    raws.map((raw, nth) => ({
      draft: {
        type: "t",
        source: "custom",
        severity: "info",
        class: "security",
        timestampMs: timestampMs + nth,
        raw,
        enrichment: {},
      },
    })),
  );
const find = (store: Store, search: string) =>
  store.events.entities({ search, fromMs: DAY, toMs: DAY + 3 * DAY_MS, limit: 1000 });

async function changeColumns(dataDir: string, sql: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(columnsFile(dataDir));
  const connection = await instance.connect();
  const rows = (await connection.runAndReadAll(sql)).getRows();
  connection.closeSync();
  instance.closeSync();
  return rows;
}

async function whenComplete(store: Store, search: string): Promise<EntityMatches> {
  for (;;) {
    const found = await find(store, search);
    if (found.isComplete) return found;
  }
}

test("entities of events that an earlier version stored are counted after the start, while new ones come in", async () => {
  const { dataDir, open } = await withFolder();
  let store = await open();
  for (let day = 0; day < 3; day++)
    await append(
      store,
      Array.from({ length: 1200 }, (_, nth) => ({ user: `user${nth % 7}`, src_ip: "2001:DB8::1" })),
      DAY + day * DAY_MS,
    );
  const before = await find(store, "user");
  expect(before.entities.reduce((sum, { events }) => sum + events, 0)).toBe(3600);
  await store.close();
  await changeColumns(
    dataDir,
    "DROP TABLE entities; DROP TABLE entity_backlog; UPDATE schema_version SET version = 1; FROM schema_version",
  );

  store = await open();
  await append(store, [{ user: "user0" }]);
  const [first, ...others] = before.entities.filter(({ value }) => value === "user0");
  expect(others).toEqual([]);
  const after = await whenComplete(store, "user0");
  expect(after.entities).toEqual([{ ...first!, events: first!.events + 1 }]);
  expect((await find(store, "2001:db8::1")).entities).toMatchObject([{ events: 3600 }]);
  await store.close();
  store = await open();
  expect(await find(store, "user0")).toEqual(after);
  await store.close();
});

test("the rows of an entity are merged, and its counts stay", async () => {
  const { dataDir, open } = await withFolder();
  const store = await open();
  // The memtables of these tests are small: each has most of the users again.
  for (let round = 0; round < 60; round++)
    await append(
      store,
      Array.from({ length: 290 }, (_, nth) => ({ user: `user${nth}` })),
    );
  const { entities, total } = await find(store, "user");
  expect(total).toBe(290);
  expect(entities.every(({ events }) => events === 60)).toBe(true);
  await store.close();
  const [[rows]] = (await changeColumns(dataDir, "SELECT count(*) FROM entities")) as [[bigint]];
  expect(Number(rows)).toBeLessThan(12_000);
});

test("older days are left out if the newest have many matches, and a longer text reads them", async () => {
  const { open } = await withFolder();
  const store = await open();
  await append(store, [{ user: "user-of-old" }]);
  for (let at = 0; at < 26_000; at += 2000)
    await append(
      store,
      Array.from({ length: 2000 }, (_, nth) => ({ user: `user${at + nth}`, host: `host${at + nth}` })),
      DAY + 2 * DAY_MS,
    );
  // Only rows on disk are counted towards the limit.
  await store.close();
  const reopened = await open();
  const many = await find(reopened, "user");
  expect(many).toMatchObject({ total: 26_000, fromMs: DAY + 2 * DAY_MS, toMs: DAY + 3 * DAY_MS, isComplete: false });
  expect(await find(reopened, "user-of")).toMatchObject({ total: 1, fromMs: DAY, isComplete: true });
  await reopened.close();
});
