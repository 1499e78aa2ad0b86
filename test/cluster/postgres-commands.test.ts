import { afterAll, beforeAll, expect, test } from "vitest";
import { rmSync } from "node:fs";
import { authorized, makeFolder, startTocsin, tocsin } from "../tocsin.ts";
import { describeWithPostgres, testDatabase } from "./test-database.ts";

describeWithPostgres("the command line with cases in PostgreSQL", () => {
  let dataDir: string;
  let env: Record<string, string>;
  beforeAll(async () => {
    dataDir = makeFolder();
    env = { TOCSIN_STORE_CASES: "postgres", TOCSIN_POSTGRES_URL: await testDatabase(), TOCSIN_DATA_DIR: dataDir };
  });
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  test("keys are created, listed and revoked, and a running server knows", async () => {
    const created = await tocsin(["keys", "create", "--name", "ci", "--scopes", "all", "--json"], env);
    expect(created).toMatchObject({ code: 0, stderr: "" });
    const { id, key } = JSON.parse(created.stdout) as { id: string; key: string };
    const server = await startTocsin(dataDir, { env });
    try {
      const statusOf = async () => (await fetch(`${server.address}/v1/events`, authorized(key))).status;
      expect(await statusOf()).toBe(200);
      const listed = JSON.parse((await tocsin(["keys", "list", "--json"], env)).stdout) as { id: string }[];
      expect(listed.map((each) => each.id)).toEqual([id]);
      expect((await tocsin(["keys", "revoke", id], env)).code).toBe(0);
      await expect.poll(statusOf).toBe(401);
    } finally {
      await server.stop();
    }
    const status = await tocsin(["storage", "status", "--json"], env);
    expect(JSON.parse(status.stdout)).toEqual({ missing: [], retention_held_at: null });
  });

  test("a server that cannot be reached, and a file that is missing, are told in words and without the password", async () => {
    const elsewhere = { ...env, TOCSIN_POSTGRES_URL: "postgres://ann:SECRET@127.0.0.1:1/cases" };
    const unreachable = await tocsin(["keys", "list"], elsewhere);
    expect(unreachable.code).toBe(1);
    expect(unreachable.stderr).toMatch(
      /no PostgreSQL that accepts writes could be reached at 127\.0\.0\.1:1.*ECONNREFUSED/,
    );
    expect(unreachable.stderr).toMatch(/Check postgres\.url/);
    expect(unreachable.stdout + unreachable.stderr).not.toMatch(/SECRET|\bat \w+ \(/);
    const missing = await tocsin(["check"], { ...env, TOCSIN_POSTGRES_PASSWORD_FILE: "/nowhere/password" });
    expect(missing.stdout + missing.stderr).toMatch(
      /postgres\.password_file.*the file \/nowhere\/password cannot be read/,
    );
  });
});
