import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { storeContract } from "../contract.ts";
import { openEmbedded } from "./embedded.ts";

storeContract("the embedded store", async (now) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-store-"));
  const open = () =>
    openEmbedded({
      dataDir,
      platform: "platform",
      indexPrefix: "tocsin",
      registry: new Registry(),
      log: pino({ level: "silent" }),
      now,
    });
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
});
