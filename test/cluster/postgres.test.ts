import { Client } from "pg";
import { expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "./test-database.ts";

describeWithPostgres("a PostgreSQL for tests", () => {
  test("each caller gets an empty database of its own", async () => {
    const urls = await Promise.all([testDatabase(), testDatabase()]);
    expect(new Set(urls).size).toBe(2);
    for (const connectionString of urls) {
      const client = new Client({ connectionString });
      await client.connect();
      const { rows } = await client.query("SELECT count(*)::int AS count FROM pg_tables WHERE schemaname = 'public'");
      expect(rows).toEqual([{ count: 0 }]);
      await client.end();
    }
  });
});
