import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import pino from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startPostgres, type PostgresServer } from "../../../test/cluster/postgres.ts";
import { describeWithPostgres } from "../../../test/cluster/test-database.ts";
import {
  CA,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from "../../collectors/lines/certificates.fixture.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { openPostgresCases } from "./postgres-cases.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

// Servers of their own: a primary with a standby, and one that wants TLS and passwords.

const log = pino({ level: "silent" });

describeWithPostgres("servers of PostgreSQL", () => {
  let opened: OpenedParts;
  let folder: string;
  beforeEach(() => {
    opened = new OpenedParts();
    folder = mkdtempSync(join(tmpdir(), "tocsin-postgres-files-"));
    opened.add(() => rmSync(folder, { recursive: true }));
  });
  afterEach(() => opened.close());

  const start = async (options?: Parameters<typeof startPostgres>[0]): Promise<PostgresServer> => {
    const server = await startPostgres(options);
    opened.add(() => server.end());
    return server;
  };
  const open = (url: string, more?: Parameters<typeof postgresSettings>[1]) => {
    const settings = postgresSettings(url, more);
    const database = new PostgresDatabase({ settings, registry: new Registry(), log });
    opened.add(() => database.close());
    return database;
  };

  test("of a primary and a standby the primary is used, in whatever order they are named, also after a failover", async () => {
    const primary = await start({ isDurable: true });
    const standby = await start({ standbyOf: primary });
    const url = `postgres://tocsin@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`;
    const cases = await openPostgresCases({ settings: postgresSettings(url), registry: new Registry(), log }, opened);
    const database = open(url);
    await cases.exports.put({ id: "exp_1" } as never);
    const admin = new Client({ connectionString: primary.url("postgres") });
    await admin.connect();
    const caughtUp = "SELECT count(*)::int AS behind FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_lsn()";
    await expect.poll(async () => (await admin.query(caughtUp)).rows[0].behind).toBe(0);
    admin.on("error", () => undefined);

    await primary.kill();
    await expect(cases.exports.put({ id: "exp_2" } as never)).rejects.toMatchObject({ name: "StoreUnavailable" });
    await expect(database.check()).rejects.toMatchObject({ reason: "unreachable" });
    await standby.promote();
    await expect.poll(() => cases.exports.put({ id: "exp_3" } as never).then(() => true)).toBe(true);
    const ids = (await cases.exports.list()).map(({ id }) => id);
    expect(ids).toEqual(["exp_1", "exp_3"]);
    await expect(database.check()).resolves.toBeUndefined();
    const [where] = await database.query<{ port: number }>("SELECT inet_server_port() AS port");
    expect(where).toEqual({ port: standby.port });
  });

  test("the connection is encrypted and verified, with a password from a file or a certificate", async () => {
    const file = (name: string, text: string) => {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    };
    const server = await start({
      settings: { ssl: "on", ssl_cert_file: "server.crt", ssl_key_file: "server.key", ssl_ca_file: "ca.crt" },
      access: [
        "local all tocsin trust",
        "hostssl all ann 127.0.0.1/32 scram-sha-256",
        "hostssl all bob 127.0.0.1/32 trust clientcert=verify-ca",
        "hostssl all tocsin 127.0.0.1/32 trust",
      ],
      prepare: (data) => {
        writeFileSync(join(data, "server.crt"), SERVER_CERTIFICATE);
        writeFileSync(join(data, "server.key"), SERVER_KEY);
        writeFileSync(join(data, "ca.crt"), CA);
        chmodSync(join(data, "server.key"), 0o600);
      },
    });
    const at = (login: string, host = "127.0.0.1") => `postgres://${login}@${host}:${server.port}/postgres`;
    const admin = open(at("tocsin"), { tls: "require" });
    await admin.run("CREATE ROLE ann LOGIN PASSWORD 'p@ss word'");
    await admin.run("CREATE ROLE bob LOGIN");
    const tlsCa = file("ca.pem", CA);
    const passwordFile = file("password", "p@ss word\n");
    const isEncrypted = async (database: PostgresDatabase) =>
      (await database.query<{ ssl: boolean }>("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))[0]!.ssl;

    expect(await isEncrypted(admin)).toBe(true);
    expect(await isEncrypted(open(at("ann"), { tls: "verify", tlsCa, passwordFile }))).toBe(true);
    expect(await isEncrypted(open(at("ann:p%40ss%20word"), { tls: "verify", tlsCa }))).toBe(true);
    const certificate = { tlsCertificate: file("c.pem", CLIENT_CERTIFICATE), tlsKey: file("k.pem", CLIENT_KEY) };
    expect(await isEncrypted(open(at("bob"), { tls: "verify", tlsCa, ...certificate }))).toBe(true);

    const refusal = async (database: PostgresDatabase) => {
      const failure = (await database.query("SELECT 1").catch((error: unknown) => error)) as Error;
      expect(failure).toMatchObject({ name: "StoreUnavailable", reason: "unreachable" });
      return String((failure.cause as Error).message);
    };
    expect(await refusal(open(at("ann:wrong"), { tls: "verify", tlsCa }))).toMatch(/password authentication failed/);
    expect(await refusal(open(at("bob"), { tls: "verify", tlsCa }))).toMatch(/certificate/);
    expect(await refusal(open(at("tocsin"), { tls: "off" }))).toMatch(/no encryption/);
    expect(await refusal(open(at("tocsin"), { tls: "verify" })), "unknown authority").toMatch(/certificate/);
    const missing = { tls: "verify", tlsCa: join(folder, "none.pem") } as const;
    expect(() => open(at("tocsin"), missing)).toThrow(
      /postgres\.tls_ca: the file .*none\.pem cannot be read \(ENOENT\)/,
    );
  });

  test("a server that is paused does not hold calls up for longer than the timeouts say", async () => {
    const server = await start();
    const database = open(server.url("postgres"), { statementSeconds: 1, connectSeconds: 1 });
    await database.check();
    server.pause();
    try {
      await expect(database.query("SELECT 1")).rejects.toMatchObject({ reason: "unreachable" });
      await expect(database.query("SELECT 1")).rejects.toMatchObject({ name: "StoreUnavailable" });
    } finally {
      server.resume();
    }
    await expect.poll(() => database.check().then(() => true)).toBe(true);
  });
});
