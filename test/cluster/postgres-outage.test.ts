import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { authorized, makeFolder, startTocsin, tocsin } from "../tocsin.ts";
import { startPostgres } from "./postgres.ts";
import { describeWithPostgres } from "./test-database.ts";

describeWithPostgres("a server whose PostgreSQL goes away", () => {
  test("answers 503 with a time to retry, is not ready, and goes on by itself once PostgreSQL is back", async () => {
    const postgres = await startPostgres();
    const dataDir = makeFolder();
    const env = {
      TOCSIN_STORE_CASES: "postgres",
      TOCSIN_POSTGRES_URL: postgres.url("postgres"),
      TOCSIN_POSTGRES_CONNECT_SECONDS: "2",
      TOCSIN_DATA_DIR: dataDir,
    };
    const created = await tocsin(["keys", "create", "--name", "ci", "--scopes", "all", "--json"], env);
    const { key } = JSON.parse(created.stdout) as { key: string };
    const server = await startTocsin(dataDir, { env });
    try {
      const ask = (path: string) => fetch(`${server.address}${path}`, authorized(key));
      expect((await ask("/v1/keys")).status).toBe(200);
      expect((await ask("/readyz")).status).toBe(200);
      await postgres.kill();
      const refused = await ask("/v1/keys");
      expect(refused.status).toBe(503);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await ask("/readyz")).status).toBe(503);
      // Long enough for what the service writes every second.
      for (let i = 0; i < 4; i++) await ask("/v1/events");
      await new Promise((resolve) => setTimeout(resolve, 3000));
      expect(server.child.exitCode, server.output()).toBeNull();
      await postgres.start();
      await expect.poll(async () => (await ask("/v1/keys")).status).toBe(200);
      await expect.poll(async () => (await ask("/readyz")).status).toBe(200);
    } finally {
      await server.stop();
      await postgres.end();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
