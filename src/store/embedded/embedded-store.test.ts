import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../testing/contract.ts";
import { options } from "./embedded-store.fixture.ts";
import { openEmbedded } from "./embedded-store.ts";

storeContract("the embedded store", async (now) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-store-"));
  let store = await openEmbedded(options(dataDir, now));
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await openEmbedded(options(dataDir, now));
      return store;
    },
    end: async () => {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
});
