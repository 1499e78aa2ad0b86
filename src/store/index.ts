import { Keys } from "./embedded/keys.ts";
import type { KeyStore } from "./store.ts";

// The stores there are.

export { openEmbedded as openStore, rebuildColumns } from "./embedded/embedded.ts";

export { areKeysLost } from "./embedded/layout.ts";
export { readStoredRules } from "./embedded/cases/rules.ts";
export { readPlatformWord } from "./embedded/platform-word.ts";

/** The keys alone, for the command line: beside a running server or without one. */
export function openKeyStore(dataDir: string): KeyStore & { close(): void } {
  return new Keys(dataDir);
}
