import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { migratePostgres, NewerSchema } from "./postgres-migrations.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

describeWithPostgres("the connections to PostgreSQL", () => {
  let url: string;
  let registry: Registry;
  let database: PostgresDatabase;
  const open = (more: Parameters<typeof postgresSettings>[1] = {}, in_ = new Registry()) =>
    new PostgresDatabase({ settings: postgresSettings(url, more), registry: in_, log: pino({ level: "silent" }) });
  const counted = async (name: string, reason: string) =>
    (await registry.getSingleMetric(name)!.get()).values.find(({ labels }) => labels["reason"] === reason)?.value ?? 0;

  beforeAll(async () => {
    url = await testDatabase();
    registry = new Registry();
    database = open({}, registry);
    await database.query("CREATE TABLE counters(name text PRIMARY KEY, value int8 NOT NULL)");
  });
  afterAll(() => database.close());

  test("integers are exact: numbers as far as a double is, bigints beyond; sums and bytes too", async () => {
    const [row] = await database.query(
      `SELECT 9007199254740991::int8 AS safe, 9007199254740993::int8 AS large, (-9223372036854775808)::int8 AS least,
         18446744073709551616::numeric AS sum, 12::numeric AS small, 1.50::numeric AS decimal, '\\x00ff'::bytea AS bytes`,
    );
    expect(row).toEqual({
      safe: 9_007_199_254_740_991,
      large: 9_007_199_254_740_993n,
      least: -9_223_372_036_854_775_808n,
      sum: 18_446_744_073_709_551_616n,
      small: 12,
      decimal: "1.50",
      bytes: new Uint8Array([0, 255]),
    });
    const [given] = await database.query("SELECT $1::int8 AS large, $2::bytea AS bytes", [
      9_007_199_254_740_993n,
      new Uint8Array([1, 0]),
    ]);
    expect(given).toEqual({ large: 9_007_199_254_740_993n, bytes: new Uint8Array([1, 0]) });
  });

  test("transactions that conflict are run again until each has happened once", async () => {
    await database.run("INSERT INTO counters VALUES ('conflicts', 0)");
    const add = () =>
      database.transact(
        async (transaction) => {
          const [row] = await transaction.query<{ value: number }>(
            "SELECT value FROM counters WHERE name = 'conflicts'",
          );
          await transaction.run("UPDATE counters SET value = $1 WHERE name = 'conflicts'", [row!.value + 1]);
        },
        { isolation: "SERIALIZABLE" },
      );
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, add));
    const done = outcomes.filter(({ status }) => status === "fulfilled").length;
    const [row] = await database.query<{ value: number }>("SELECT value FROM counters WHERE name = 'conflicts'");
    expect(row!.value).toBe(done);
    expect(done).toBeGreaterThan(1);
    expect(await counted("tocsin_postgres_retries_total", "serialization")).toBeGreaterThan(0);
  });

  test("one of two transactions that wait for each other is run again", async () => {
    await database.run("INSERT INTO counters VALUES ('left', 0), ('right', 0)");
    const { promise: met, resolve } = Promise.withResolvers<void>();
    let waiting = 0;
    const add = (first: string, second: string) =>
      database.transact(async (transaction) => {
        await transaction.run("UPDATE counters SET value = value + 1 WHERE name = $1", [first]);
        if (++waiting === 2) resolve();
        await met;
        await transaction.run("UPDATE counters SET value = value + 1 WHERE name = $1", [second]);
      });
    await Promise.all([add("left", "right"), add("right", "left")]);
    const rows = await database.query("SELECT value FROM counters WHERE name IN ('left', 'right')");
    expect(rows).toEqual([{ value: 2 }, { value: 2 }]);
    expect(await counted("tocsin_postgres_retries_total", "deadlock")).toBeGreaterThan(0);
  });

  test("work that throws, or that hides a failed statement, leaves nothing behind", async () => {
    const insert = "INSERT INTO counters VALUES ('nothing', 0)";
    const thrown = database.transact(async (transaction) => {
      await transaction.run(insert);
      throw new Error("aborted");
    });
    await expect(thrown).rejects.toThrow("aborted");
    const hidden = database.transact(async (transaction) => {
      await transaction.run(insert);
      await transaction.run("SELECT no_such_column").catch(() => undefined);
    });
    await expect(hidden).rejects.toThrow("rolled back");
    expect(await database.query("SELECT 1 FROM counters WHERE name = 'nothing'")).toEqual([]);
  });

  test.each([
    ["53100", "disk_full"],
    ["58030", "disk_full"],
    ["53300", "queue_full"],
    ["53200", "queue_full"],
    ["25006", "unreachable"],
    ["57P01", "unreachable"],
    ["08006", "unreachable"],
    ["57014", "failed"],
    ["55P03", "failed"],
  ])("the error %s of the server is %s, counted, and passes", async (code, reason) => {
    const before = await counted("tocsin_postgres_failures_total", reason);
    const failing = database.run(`DO $$ BEGIN RAISE EXCEPTION 'failed' USING ERRCODE = '${code}'; END $$`);
    await expect(failing).rejects.toMatchObject({ name: "StoreUnavailable", reason });
    expect(await counted("tocsin_postgres_failures_total", reason)).toBe(before + 1);
    await expect(database.check()).resolves.toBeUndefined();
  });

  test("an error of a statement is a bug and stays what it is", async () => {
    await expect(database.query("SELECT no_such_column")).rejects.toMatchObject({ code: "42703" });
  });

  test("a statement that takes too long is cancelled", async () => {
    const impatient = open({ statementSeconds: 1 });
    await expect(impatient.query("SELECT pg_sleep(30)")).rejects.toMatchObject({ reason: "failed" });
    await impatient.close();
  });

  test("calls wait for a connection, and no longer than the setting says", async () => {
    const narrow = open({ poolMax: 1, connectSeconds: 1 });
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const holding = narrow.transact(async () => {
      begin();
      await held;
    });
    await begun;
    await expect(narrow.query("SELECT 1")).rejects.toMatchObject({ reason: "queue_full" });
    letGo();
    await holding;
    await expect(narrow.check()).resolves.toBeUndefined();
    await narrow.close();
    await expect(narrow.query("SELECT 1")).rejects.toMatchObject({ reason: "closed" });
  });

  test("a connection that the server ends fails its transaction, and the next call takes another", async () => {
    const ended = database.transact(async (transaction) => {
      const [row] = await transaction.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await database.query("SELECT pg_terminate_backend($1)", [row!.pid]);
      await transaction.query("SELECT 1");
    });
    await expect(ended).rejects.toMatchObject({ name: "StoreUnavailable", reason: "unreachable" });
    await expect(database.check()).resolves.toBeUndefined();
  });

  test("where nothing listens, calls fail with a reason that names the hosts and no password", async () => {
    const nowhere = new PostgresDatabase({
      settings: postgresSettings("postgres://ann:SECRET@127.0.0.1:1,127.0.0.1:2/cases"),
      registry: new Registry(),
      log: pino({ level: "silent" }),
    });
    const failure = await nowhere.query("SELECT 1").catch((error: unknown) => error as StoreUnavailable);
    expect(failure).toMatchObject({ name: "StoreUnavailable", reason: "unreachable" });
    expect(String((failure as StoreUnavailable).cause)).toMatch(/127\.0\.0\.1:1, 127\.0\.0\.1:2/);
    expect(`${String((failure as StoreUnavailable).cause)} ${JSON.stringify(failure)}`).not.toContain("SECRET");
    await nowhere.close();
  });

  test("nodes that start at once migrate once, and a database of a newer version is left as it is", async () => {
    const steps = ["CREATE TABLE migrated(at int8)", "INSERT INTO migrated VALUES (1)"];
    const nodes = [open(), open(), open()];
    await Promise.all(nodes.map((node) => migratePostgres(node, steps)));
    expect(await database.query("SELECT * FROM migrated")).toEqual([{ at: 1 }]);
    const failing = migratePostgres(database, [...steps, "INSERT INTO migrated VALUES (2)", "SELECT no_such_column"]);
    await expect(failing).rejects.toMatchObject({ code: "42703" });
    expect(await database.query("SELECT * FROM migrated"), "all or nothing").toEqual([{ at: 1 }]);
    await migratePostgres(database, [...steps, "INSERT INTO migrated VALUES (3)"]);
    await expect(migratePostgres(nodes[0]!, steps)).rejects.toThrow(NewerSchema);
    await expect(migratePostgres(nodes[0]!, steps)).rejects.toThrow(
      /schema version is 3, and this version knows up to 2/,
    );
    await Promise.all(nodes.map((node) => node.close()));
  });

  test("a database that does not store Unicode is refused in words", async () => {
    const name = `${url.split("/").at(-1)}_ascii`;
    await database.run(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`);
    const settings = postgresSettings(url.replace(/[^/]+$/, name));
    const ascii = new PostgresDatabase({ settings, registry: new Registry(), log: pino({ level: "silent" }) });
    await expect(migratePostgres(ascii, [])).rejects.toThrow(
      /has the encoding SQL_ASCII: create it with ENCODING 'UTF8'/,
    );
    await ascii.close();
  });
});
