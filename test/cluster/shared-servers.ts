import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "pg";
import type { TestProject } from "vitest/node";
import { postgresPrograms, startPostgres, type PostgresServer } from "./postgres.ts";

// One server of each engine for all test files of a run. It starts when the first file asks for it, so that a run without
// such files costs nothing, and stops at the end. Test processes ask over HTTP, because each runs some of the files.

declare module "vitest" {
  interface ProvidedContext {
    /** The URL at which test processes ask for a database. */
    sharedServers: string;
  }
}

/** The URL of a new database, or why there is none. */
export type DatabaseAnswer = { readonly url: string } | { readonly missing: string };

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  let postgres: Promise<PostgresServer> | undefined;
  let databases = 0;
  const newDatabase = async (): Promise<DatabaseAnswer> => {
    if (postgresPrograms() === undefined) return { missing: "PostgreSQL is not installed" };
    postgres ??= startPostgres();
    const server = await postgres;
    const name = `test_${++databases}`;
    const client = new Client({ connectionString: server.url("postgres") });
    await client.connect();
    try {
      await client.query(`CREATE DATABASE ${name}`);
    } finally {
      await client.end();
    }
    return { url: server.url(name) };
  };
  const broker = createServer((_, response) => {
    // Otherwise a file that asks much later may use the connection just as it is closed.
    response.setHeader("connection", "close");
    newDatabase().then(
      (answer) => response.end(JSON.stringify(answer)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, "127.0.0.1");
  await once(broker, "listening");
  project.provide("sharedServers", `http://127.0.0.1:${(broker.address() as AddressInfo).port}/`);
  return async () => {
    broker.closeAllConnections();
    broker.close();
    await (await postgres)?.end();
  };
}
