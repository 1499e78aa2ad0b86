import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import type { OpenStoreUnderTest } from "../testing/contract.ts";
import { openStore } from "../open-store.ts";

/** Options of a store in which queries meet every intermediate state. */
export const options = (dataDir: string, now: () => number = Date.now) => ({
  dataDir,
  platform: "platform",
  indexPrefix: "tocsin",
  registry: new Registry(),
  log: pino({ level: "silent" }),
  now,
  // So few that queries find rows in several tables, and segments that are being written.
  tailRowsMax: 300,
  // So short that the engine drops its cache between any two of them.
  restMs: 10,
});

export const openUnderTest: OpenStoreUnderTest = async (now) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-store-"));
  let store = await openStore(options(dataDir, now));
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await openStore(options(dataDir, now));
      return store;
    },
    end: async () => {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};
