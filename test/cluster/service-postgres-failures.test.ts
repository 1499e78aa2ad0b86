import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule, rule } from "../../src/api/rule-endpoints.fixture.ts";
import { loadSettings } from "../../src/config/config.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServerIn, type Answer, type TestServer } from "../api-server.ts";
import { clusterOf } from "./cluster-of-folder.ts";
import { startPostgres, type PostgresServer } from "./postgres.ts";

// The whole service on OpenSearch while its PostgreSQL is full, or gone.

const DISK_BYTES = 40 * 1024 * 1024;

await withEventEngines("a service on OpenSearch whose PostgreSQL fails", (url) => {
  let postgres: PostgresServer;
  let server: TestServer;
  let prefix: string;
  let syslogPort: number;
  /** A disk for the database alone; undefined where this process may mount none. */
  let disk: string | undefined;

  beforeAll(async () => {
    postgres = await startPostgres();
    const dataDir = await mkdtemp(join(tmpdir(), "tocsin-postgres-failures-"));
    disk = mountDisk(join(postgres.folder, "..", "disk"), statSync(postgres.folder));
    const client = new Client({ connectionString: postgres.url("postgres") });
    await client.connect();
    if (disk !== undefined) await client.query(`CREATE TABLESPACE small LOCATION '${disk}/data'`);
    await client.query(`CREATE DATABASE cases ${disk === undefined ? "" : "TABLESPACE small"}`);
    await client.end();
    const loaded = loadSettings({ environment: {}, workingFolder: dataDir });
    if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
    const cluster = await clusterOf(dataDir);
    prefix = cluster.indexPrefix;
    const settings = cluster.settings(loaded.settings);
    server = await openTestServerIn(dataDir, {
      usesCluster: true,
      settings: {
        postgres: { ...settings.postgres, url: postgres.url("cases"), connectSeconds: 2 },
        syslogPort: 0,
        collectors: { ...loaded.settings.collectors, addresses: ["127.0.0.1"] },
      },
    });
    const { listeners } = (await server.call("GET", "/v1/collectors")).body.data;
    syslogPort = listeners.find((one: any) => one.name === "syslog" && one.transport === "tcp").port;
  });
  afterAll(async () => {
    await server?.close();
    if (disk !== undefined) execFileSync("umount", ["--lazy", disk]);
    await postgres.end();
  });

  const expectUnavailable = ({ status, headers, body, text }: Answer, message: RegExp) => {
    expect(status, text).toBe(503);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(body.error.message).toMatch(message);
  };
  const failures = async (reason: string) => {
    const { text } = await server.call("GET", "/metrics");
    return Number(new RegExp(`tocsin_postgres_failures_total\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
  };
  const countsOf = async (rule: string) =>
    (await server.call("GET", `/v1/alerts?rule_name=${rule}`)).body.data.map((alert: any) => alert.event_count);
  const submit = (type: string) => server.call("POST", "/v1/events", { body: { type, source: "custom", data: {} } });

  test("full: changes are refused, events are stored, and their alerts come once there is room", async (context) => {
    if (disk === undefined) return context.skip("this process may not mount a small disk");
    const { name } = await createRule(server, { conditions: [{ field: "type", equals: "full" }] });
    const ballast = join(disk, "ballast");
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(ballast, Buffer.alloc(bavail * bsize, 1));
    // What is free in the pages of a table is used up first.
    const refused = async () => {
      for (;;) {
        const answer = await server.call("POST", "/v1/rules", { body: rule({ description: "x".repeat(900) }) });
        if (answer.status !== 201) return answer;
      }
    };
    expectUnavailable(await refused(), /the disk of PostgreSQL is full/);
    expectUnavailable(await server.call("GET", "/readyz"), /the disk of PostgreSQL is full/);
    expect((await submit("full")).status).toBe(201);
    expect((await server.call("GET", "/v1/events?type=full")).body.data).toHaveLength(1);
    expect((await server.call("GET", "/v1/rules")).status).toBe(200);
    expect(await failures("disk_full")).toBeGreaterThan(0);
    rmSync(ballast);
    await expect.poll(async () => (await server.call("GET", "/readyz")).status).toBe(200);
    await expect.poll(() => countsOf(name)).toEqual([1]);
  });

  test("gone: requests are refused, lines are stored, and their alerts come once it is back", async () => {
    const { name } = await createRule(server, { conditions: [{ field: "raw.message", contains: "sentwithoutcases" }] });
    const send = (text: string) =>
      connect(syslogPort, "127.0.0.1").end(`<13>1 ${new Date().toISOString()} host app - - - ${text}\n`);
    const stored = async (word: string) => {
      const answer = await fetch(`${url}/${prefix}-events-*/_count?q=words:${word}`);
      return ((await answer.json()) as { count: number }).count;
    };
    // The platform word is kept in PostgreSQL with the first event that has it.
    send("sentbefore");
    await expect.poll(() => stored("sentbefore")).toBe(1);
    await postgres.kill();
    await expect.poll(() => submit("gone")).toMatchObject({ status: 503 });
    expectUnavailable(await submit("gone"), /PostgreSQL does not answer/);
    expectUnavailable(await server.call("GET", "/readyz"), /PostgreSQL does not answer/);
    send("sentwithoutcases");
    await expect.poll(() => stored("sentwithoutcases")).toBe(1);
    await postgres.start();
    await expect.poll(async () => (await server.call("GET", "/readyz")).status).toBe(200);
    await expect.poll(() => countsOf(name)).toEqual([1]);
    expect(await failures("unreachable")).toBeGreaterThan(0);
  });
});

function mountDisk(folder: string, { uid, gid }: { readonly uid: number; readonly gid: number }): string | undefined {
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  mkdirSync(join(folder, "data"));
  chownSync(folder, uid, gid);
  chownSync(join(folder, "data"), uid, gid);
  return folder;
}
