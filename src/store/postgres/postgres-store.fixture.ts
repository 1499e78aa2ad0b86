import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testDatabase } from "../../../test/cluster/test-database.ts";
import { options } from "../embedded/embedded-store.fixture.ts";
import { openStore } from "../open-store.ts";
import type { OpenStoreUnderTest } from "../testing/contract.ts";
import type { PostgresSettings } from "./postgres-address.ts";

export const postgresSettings = (url: string, more: Partial<PostgresSettings> = {}): PostgresSettings => ({
  url,
  passwordFile: null,
  tls: "off",
  tlsCa: null,
  tlsCertificate: null,
  tlsKey: null,
  poolMax: 5,
  connectSeconds: 20,
  statementSeconds: 60,
  ...more,
});

/** A store with its cases in PostgreSQL and its data in a folder. */
export const openWithPostgres: OpenStoreUnderTest = async (now) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-store-"));
  const postgres = postgresSettings(await testDatabase());
  const open = () => openStore({ ...options(dataDir, now), postgres });
  let store = await open();
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
    end: async () => {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};
