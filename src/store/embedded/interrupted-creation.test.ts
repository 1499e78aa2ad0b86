import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { startOfDay } from "../../lib/time.ts";
import { casesFile, dayFile, keysFile, stateFile } from "../files/layout.ts";
import { openStore } from "../open-store.ts";
import { options } from "./embedded-store.fixture.ts";

// A file has no write-ahead log yet while it is created. Until then SQLite keeps a journal, from which the next connection rolls
// back what was interrupted; one that may only read refuses the file.

/** Writes the first pages of a database, in a process that is killed before it commits. */
const KILLED = `
  const { DatabaseSync } = require("node:sqlite");
  const db = new DatabaseSync(process.argv[1]);
  db.exec("PRAGMA cache_size = 1; BEGIN; CREATE TABLE half(text)");
  const insert = db.prepare("INSERT INTO half VALUES (?)");
  for (let n = 0; n < 100; n++) insert.run("text".repeat(500));
  process.kill(process.pid, "SIGKILL");
`;

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const NOW = Date.now();
const FILES = {
  "a day": (dataDir: string) => dayFile({ dataDir, indexPrefix: "tocsin" }, startOfDay(NOW)),
  cases: casesFile,
  keys: keysFile,
  "the state": stateFile,
};

test.each(Object.entries(FILES))("a process that was killed while it created %s does no harm", async (_, fileOf) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-created-"));
  folders.push(dataDir);
  const path = fileOf(dataDir);
  mkdirSync(dirname(path), { recursive: true });
  expect(spawnSync(process.execPath, ["-e", KILLED, path]).signal).toBe("SIGKILL");
  expect(existsSync(`${path}-journal`)).toBe(true);
  const store = await openStore(options(dataDir));
  try {
    const draft = {
      type: "created",
      source: "custom",
      severity: "info" as const,
      class: "security" as const,
      timestampMs: NOW,
      raw: {},
      enrichment: {},
    };
    const [stored] = await store.events.append([{ draft }]);
    expect(await store.events.get(stored!.id)).toContain('"type":"created"');
    expect(await store.keys.list()).toEqual([]);
  } finally {
    await store.close();
  }
});
