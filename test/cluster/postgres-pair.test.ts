import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import pino from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { PostgresPair } from "../../cluster/postgres-pair.ts";
import { PostgresDatabase } from "../../src/store/postgres/postgres-database.ts";
import { postgresSettings } from "../../src/store/postgres/postgres-store.fixture.ts";
import { freePorts } from "./opensearch.ts";
import { describeWithPostgres } from "./test-database.ts";

describeWithPostgres("a primary of PostgreSQL with a synchronous standby", () => {
  test("keeps every acknowledged commit when the primary is killed or paused, and gets a standby again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tocsin-pair-"));
    // Root starts PostgreSQL as another user.
    chmodSync(folder, 0o755);
    const [first, second] = await freePorts(2);
    const messages: string[] = [];
    const start = () =>
      PostgresPair.start({
        folder,
        ports: [first!, second!],
        restartMs: 0,
        tell: (message) => messages.push(message),
        onProcess: () => undefined,
      });
    let pair = await start();
    const settings = postgresSettings(pair.url, { connectSeconds: 2, statementSeconds: 5 });
    const database = new PostgresDatabase({ settings, registry: new Registry(), log: pino({ level: "silent" }) });
    const acknowledged: number[] = [];
    let next = 0;
    /** Writes until a commit is acknowledged after the call. */
    const write = () =>
      expect.poll(async () => {
        const n = next++;
        return database.run("INSERT INTO written VALUES ($1)", [n]).then(
          () => acknowledged.push(n) > 0,
          () => false,
        );
      });
    try {
      await database.run("CREATE TABLE written (n int)");
      await write().toBe(true);
      await pair.primary!.kill();
      await write().toBe(true);
      await expect.poll(() => pair.failovers).toBe(1);
      await expect.poll(() => pair.isSynchronous, { timeout: 60_000 }).toBe(true);
      await write().toBe(true);
      pair.primary!.pause();
      await expect.poll(() => pair.failovers, { timeout: 60_000 }).toBe(2);
      await write().toBe(true);
      await expect.poll(() => pair.isSynchronous, { timeout: 60_000 }).toBe(true);
      await pair.standby!.kill();
      await write().toBe(true);
      await expect.poll(() => messages.join("\n")).toMatch(/postgres-2 ended; commits no longer wait for it/);
      await pair.close();
      pair = await start();
      await write().toBe(true);
      const rows = await database.query<{ n: number }>("SELECT n FROM written ORDER BY n");
      expect(rows.map(({ n }) => n)).toEqual(expect.arrayContaining(acknowledged));
      const client = new Client({ connectionString: pair.primary!.url("postgres") });
      await client.connect();
      const { rows: names } = await client.query("SHOW synchronous_standby_names");
      expect(names).toEqual([{ synchronous_standby_names: "*" }]);
      await client.end();
    } finally {
      await database.close();
      await pair.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
