import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { OpenedParts } from "../../lib/opened-parts.ts";
import type { CasePart } from "../ports/store.ts";
import type { GoneFile } from "../files/file-identity.ts";
import { casesFile, isMissing, keysFile } from "../files/layout.ts";
import { openCaseDatabase } from "../sqlite/cases/case-database.ts";
import { openKeyDatabase } from "../sqlite/key-database.ts";
import { embeddedLeases } from "./embedded-leases.ts";
import type { EmbeddedData } from "./embedded-data.ts";

// Cases, keys and small state in the data folder.

const LOST =
  "this file is missing or empty although the data folder has events: its content is lost, it is created empty";

/** Files that exist in every folder with events. */
function lostFiles(dataDir: string): string[] {
  return [casesFile(dataDir), keysFile(dataDir)].filter(isMissing);
}

export interface EmbeddedCasesOptions {
  readonly dataDir: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

export interface EmbeddedCases extends CasePart {
  goneFiles(): Promise<readonly GoneFile[]>;
}

export async function openEmbeddedCases(
  { dataDir, registry, log, now }: EmbeddedCasesOptions,
  { state, platformWord, hasEvents }: Pick<EmbeddedData, "state" | "platformWord" | "hasEvents">,
  opened: OpenedParts,
): Promise<EmbeddedCases> {
  const lost = hasEvents ? lostFiles(dataDir) : [];
  for (const path of lost) log.warn({ path }, LOST);
  const keys = await openKeyDatabase(dataDir, { wereLost: lost.includes(keysFile(dataDir)) });
  opened.add(() => keys.close());
  const cases = await openCaseDatabase({ dataDir, registry, now });
  opened.add(() => cases.close());
  const leases = embeddedLeases();
  return {
    alerts: {
      ...cases.alerts,
      commit: async (changes) => {
        if (changes.fence) await leases.check(changes.fence);
        return cases.alerts.commit(changes);
      },
    },
    rules: platformWord.around(cases.rules),
    detection: cases.detection,
    notifications: cases.notifications,
    analysis: cases.analysis,
    keys,
    sessions: keys.sessions,
    views: cases.views,
    exports: state.exports,
    lists: state.lists,
    reputations: state.reputations,
    retention: { notes: async () => state.retention, save: async (notes) => state.saveRetention(notes) },
    leases,
    dueAlerts: (beforeMs) => cases.dueAlerts(beforeMs),
    refused: async () => cases.refused,
    goneFiles: async () => [...keys.goneFiles, ...(await cases.goneFiles())],
    check: () => cases.check(),
  };
}
