import { hostname } from "node:os";
import { resolve } from "node:path";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { makeFolder } from "../lib/folder.ts";
import { OpenedParts } from "../lib/opened-parts.ts";
import { endingProcess } from "../lib/thread.ts";
import { openFlowDatabase } from "./duckdb/flows/flow-database.ts";
import { FolderFlows } from "./duckdb/flows/folder-flows.ts";
import { fillColumns, takeFolder } from "./embedded/embedded-data.ts";
import { folderMigrationNotes } from "./embedded/folder-migration.ts";
import { eventsFolder } from "./files/layout.ts";
import { openOpenSearchArchive, type OpenSearchSettings } from "./opensearch/opensearch-data.ts";
import { postgresArchive, postgresMigrationNotes } from "./postgres/postgres-archive.ts";
import type { PostgresSettings } from "./postgres/postgres-address.ts";
import { postgresArrivals } from "./postgres/postgres-arrivals.ts";
import { openPostgres } from "./postgres/postgres-cases.ts";
import { postgresLeases } from "./postgres/postgres-leases.ts";
import { holdServiceLease, refuseLivingService } from "./postgres/service-lease.ts";
import { FolderCases } from "./sqlite/archive/folder-cases.ts";
import { FolderEvents } from "./sqlite/archive/folder-events.ts";
import type { StoreArchive } from "./ports/archive.ts";

// Opens a store as a whole, to copy it. No service runs on it meanwhile.

export interface ArchiveOptions {
  readonly dataDir: string;
  readonly indexPrefix: string;
  readonly platform: string;
  readonly log: Logger;
  readonly now: () => number;
}

/** Closes what was opened if opening fails. */
async function opening(log: Logger, open: (opened: OpenedParts) => Promise<StoreArchive>): Promise<StoreArchive> {
  const opened = new OpenedParts();
  try {
    return await open(opened);
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}

/** The data folder, which it locks. Without `hasData` only the cases in it. */
export function openFolderArchive(options: ArchiveOptions & { readonly hasData: boolean }): Promise<StoreArchive> {
  const { dataDir, indexPrefix, platform, hasData, log, now } = options;
  return opening(log, async (opened) => {
    takeFolder(dataDir, opened).sign();
    const notes = folderMigrationNotes(dataDir);
    const cases = new FolderCases(dataDir);
    opened.add(() => cases.close());
    const close = () => opened.close();
    if (!hasData) return { cases, data: undefined, notes, prepare: async () => undefined, close };
    makeFolder(eventsFolder(dataDir));
    const events = new FolderEvents({ dataDir, indexPrefix });
    opened.add(() => events.close());
    const flows = await openFlowDatabase({ dataDir, indexPrefix, log, now });
    opened.add(() => flows.close());
    await flows.start();
    const fill = { dataDir, indexPrefix, platform, registry: new Registry(), log, now };
    return {
      cases,
      data: { events, flows: new FolderFlows(flows) },
      notes,
      prepare: async (onProgress) => void (await fillColumns({ ...fill, onProgress })),
      close,
    };
  });
}

export interface ClusterArchiveOptions extends ArchiveOptions {
  readonly postgres: PostgresSettings;
  /** Without it only the cases. */
  readonly opensearch: OpenSearchSettings | undefined;
}

/** The database, whose lease it holds, and the indices of OpenSearch. */
export function openClusterArchive(options: ClusterArchiveOptions): Promise<StoreArchive> {
  const { dataDir, indexPrefix, postgres: settings, opensearch, log, now } = options;
  return opening(log, async (opened) => {
    const registry = new Registry();
    const { database, listener } = await openPostgres({ settings, registry, log, now }, opened);
    const leases = postgresLeases(database, listener);
    const holder = `${hostname()}:${resolve(dataDir)}`;
    await refuseLivingService(leases, holder);
    const held = await holdServiceLease({
      leases,
      holder,
      onLost: endingProcess("the lease of the database"),
      log,
    });
    opened.add(() => held.close());
    const arrivals = postgresArrivals(database, listener);
    const data =
      opensearch &&
      (await openOpenSearchArchive({ settings: opensearch, indexPrefix, arrivals, registry, log, now }, opened));
    return {
      cases: postgresArchive(database),
      data,
      notes: postgresMigrationNotes(database),
      prepare: async () => undefined,
      close: () => opened.close(),
    };
  });
}
