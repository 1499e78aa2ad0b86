import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openKeyDatabase } from "./key-database.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-keys-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

test("a file without minute counts keeps its keys and usage, and stores minute counts from then on", async () => {
  const old = new DatabaseSync(join(dataDir, "keys.db"));
  old.exec(`
    CREATE TABLE keys(id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, plan TEXT NOT NULL, created_at INTEGER NOT NULL,
      expires_at INTEGER, revoked_at INTEGER, secret_hash BLOB NOT NULL, previous_hash BLOB, previous_until INTEGER) STRICT;
    CREATE TABLE usage(key_id TEXT PRIMARY KEY, last_used_at INTEGER NOT NULL, day INTEGER NOT NULL, day_count INTEGER NOT NULL) STRICT;
    INSERT INTO keys VALUES ('key_1', 'ci', 'events:read', 'pro', 1, NULL, NULL, x'01', x'02', 9);
    INSERT INTO usage VALUES ('key_1', 3, 0, 4);
  `);
  old.close();
  let keys = await openKeyDatabase(dataDir);
  expect(await keys.find("key_1")).toMatchObject({ name: "ci", plan: "pro", previous: [{ until: 9 }] });
  expect(await keys.usage()).toEqual([
    { keyId: "key_1", lastUsedAt: 3, day: 0, dayCount: 4, minuteEndsAt: 0, minuteCount: 0 },
  ]);
  const used = { keyId: "key_1", lastUsedAt: 5, day: 0, dayCount: 6, minuteEndsAt: 60_000, minuteCount: 2 };
  await keys.saveUsage([used]);
  keys.close();
  keys = await openKeyDatabase(dataDir);
  expect(await keys.usage()).toEqual([used]);
  keys.close();
});
