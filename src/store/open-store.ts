import { openKeyDatabase } from "./sqlite/key-database.ts";
import type { Layout } from "./files/layout.ts";
import { lockDataFolder } from "./embedded/lock.ts";
import { openStateDatabase } from "./sqlite/state-database.ts";
import type { KeyStore } from "./ports/key-store.ts";
import type { MissingDay } from "./ports/store.ts";

// Opens the store, or parts of it for the command line.

export { openEmbedded as openStore, rebuildColumns } from "./embedded/embedded-store.ts";

export { areKeysLost } from "./files/layout.ts";
export { readStoredRules } from "./sqlite/cases/rule-tables.ts";
export { readPlatformWord } from "./embedded/platform-word.ts";

/** The keys alone, with or without a running server. */
export function openKeyStore(dataDir: string): Promise<KeyStore & { close(): void }> {
  return openKeyDatabase(dataDir);
}

/** Losses and retention, for the command line to show and confirm. */
export async function openStorageNotes(layout: Layout) {
  const state = await openStateDatabase(layout);
  return {
    missing: (): MissingDay[] =>
      state
        .days()
        .filter(({ missing, removedAt }) => missing > 0 && removedAt === null)
        .map(({ kind, day, missing }) => ({ kind, day, rows: missing })),
    get heldAt(): number | null {
      return state.retention.heldAt;
    },
    /** Works with or without a running server. Null if retention holds nothing back, else the clock that was confirmed. */
    confirm: (): number | null => {
      const { heldAt } = state.retention;
      if (heldAt !== null) state.saveRetention({ confirmedAt: heldAt });
      return heldAt;
    },
    /** Takes the lock, because a running server would overwrite the result with its own counts. */
    acceptLosses: (): number => {
      const lock = lockDataFolder(layout.dataDir);
      try {
        return state.acceptLosses();
      } finally {
        lock.close();
      }
    },
    close: () => state.close(),
  };
}
