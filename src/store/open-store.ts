import { hostname } from "node:os";
import { resolve } from "node:path";
import pino from "pino";
import { Counter, Registry } from "prom-client";
import { OpenedParts } from "../lib/opened-parts.ts";
import { endingProcess } from "../lib/thread.ts";
import { openEmbeddedCases } from "./embedded/embedded-cases.ts";
import { openEmbeddedData, type EmbeddedOptions } from "./embedded/embedded-data.ts";
import { FileWatch } from "./embedded/file-watch.ts";
import type { PostgresSettings } from "./postgres/postgres-address.ts";
import { openAllPostgresCases, openPostgresCases } from "./postgres/postgres-cases.ts";
import { holdServiceLease } from "./postgres/service-lease.ts";
import { readPosition, readStoredRules as readEmbeddedRules } from "./sqlite/cases/rule-tables.ts";
import { openKeyDatabase } from "./sqlite/key-database.ts";
import type { Layout } from "./files/layout.ts";
import { lockDataFolder } from "./embedded/lock.ts";
import { openStateDatabase } from "./sqlite/state-database.ts";
import type { Rule } from "../model/rule.ts";
import type { AlertStore } from "./ports/alert-store.ts";
import type { KeyStore } from "./ports/key-store.ts";
import type { Fence } from "./ports/lease-store.ts";
import type { CasePart, DataPart, MissingDay, Store } from "./ports/store.ts";

// Opens the store, or parts of it for the command line.

export { rebuildColumns } from "./embedded/embedded-data.ts";
export { areKeysLost } from "./files/layout.ts";
export { postgresFileFaults } from "./postgres/postgres-address.ts";
export { readPlatformWord } from "./embedded/platform-word.ts";

export interface StoreOptions extends EmbeddedOptions {
  /** Keeps cases in PostgreSQL instead of the data folder. */
  readonly postgres?: PostgresSettings | undefined;
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const { dataDir, registry, log, now = Date.now } = options;
  const opened = new OpenedParts();
  try {
    const postgres =
      options.postgres && (await openAllPostgresCases({ settings: options.postgres, registry, log, now }, opened));
    const position = async () => (postgres ? postgres.detection.position() : readPosition(dataDir));
    const data = await openEmbeddedData(options, opened, position);
    const cases = postgres
      ? { ...postgres, rules: data.platformWord.around(postgres.rules), goneFiles: async () => [] }
      : await openEmbeddedCases({ dataDir, registry, log, now }, data, opened);
    const held =
      postgres &&
      (await holdServiceLease({
        leases: postgres.leases,
        // The folder is locked: no other process on this machine has it.
        holder: `${hostname()}:${resolve(dataDir)}`,
        onLost: endingProcess("the lease of the database"),
        log,
      }));
    if (held) opened.add(() => held.close());
    await data.start();
    const watch = new FileWatch({
      findGone: async () => (await Promise.all([data.goneFiles(), cases.goneFiles()])).flat(),
      registry,
      log,
      everyMs: options.watchMs,
    });
    opened.add(() => watch.close());
    new Counter({
      name: "tocsin_questions_refused_total",
      help: "Queries for events, alerts or flows that were refused because too many others were in flight",
      registers: [registry],
      async collect() {
        this.reset();
        this.inc((await data.refused()) + (await cases.refused()));
      },
    });
    const checks = [data, cases, watch];
    const check = async () => void (await Promise.all(checks.map((part) => part.check())));
    const alerts = held ? fencedAlerts(cases.alerts, held.lease) : cases.alerts;
    return composeStore({ ...cases, alerts }, data, { check, close: () => opened.close() });
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}

/** Detection commits only while the service holds the database. */
function fencedAlerts(alerts: AlertStore, fence: Fence): AlertStore {
  return {
    ...alerts,
    commit: ({ detected, ...changes }) => alerts.commit({ ...changes, detected: detected && { fence, ...detected } }),
  };
}

function composeStore(cases: CasePart, data: DataPart, rest: Pick<Store, "check" | "close">): Store {
  return {
    alerts: cases.alerts,
    rules: cases.rules,
    detection: cases.detection,
    notifications: cases.notifications,
    analysis: cases.analysis,
    keys: cases.keys,
    sessions: cases.sessions,
    views: cases.views,
    exports: cases.exports,
    lists: cases.lists,
    reputations: cases.reputations,
    leases: cases.leases,
    events: data.events,
    flows: data.flows,
    retention: {
      notes: () => cases.retention.notes(),
      save: (notes) => cases.retention.save(notes),
      due: (kind, beforeMs) => (kind === "alerts" ? cases.dueAlerts(beforeMs) : data.rowsBefore(kind, beforeMs)),
    },
    missing: (kind, range) => data.missing(kind, range),
    space: () => data.space(),
    ...rest,
  };
}

/** The places that the command line opens by itself. */
export interface StorePlaces {
  readonly dataDir: string;
  readonly postgres?: PostgresSettings | undefined;
}

/** The keys alone, with or without a running server. */
export async function openKeyStore({ dataDir, postgres }: StorePlaces): Promise<KeyStore & { close(): unknown }> {
  if (!postgres) return openKeyDatabase(dataDir);
  const { cases, close } = await openCasesAlone(postgres);
  return Object.assign(cases.keys, { close });
}

/** The stored rules alone, with or without a running server. */
export async function readStoredRules({ dataDir, postgres }: StorePlaces): Promise<Rule[]> {
  if (!postgres) return readEmbeddedRules(dataDir);
  const { cases, close } = await openCasesAlone(postgres);
  try {
    return await cases.rules.list();
  } finally {
    await close();
  }
}

/** Losses and retention, for the command line to show and confirm. */
export async function openStorageNotes({ dataDir, indexPrefix, postgres }: Layout & StorePlaces) {
  const state = await openStateDatabase({ dataDir, indexPrefix });
  const alone = postgres && (await openCasesAlone(postgres));
  const retention: CasePart["retention"] = alone?.cases.retention ?? {
    notes: async () => state.retention,
    save: async (notes) => state.saveRetention(notes),
  };
  return {
    missing: (): MissingDay[] =>
      state
        .days()
        .filter(({ missing, removedAt }) => missing > 0 && removedAt === null)
        .map(({ kind, day, missing }) => ({ kind, day, rows: missing })),
    heldAt: async (): Promise<number | null> => (await retention.notes()).heldAt,
    /** Works with or without a running server. Null if retention holds nothing back, else the clock that was confirmed. */
    confirm: async (): Promise<number | null> => {
      const { heldAt } = await retention.notes();
      if (heldAt !== null) await retention.save({ confirmedAt: heldAt });
      return heldAt;
    },
    /** Takes the lock, because a running server would overwrite the result with its own counts. */
    acceptLosses: (): number => {
      const lock = lockDataFolder(dataDir);
      try {
        return state.acceptLosses();
      } finally {
        lock.close();
      }
    },
    close: async () => {
      state.close();
      await alone?.close();
    },
  };
}

async function openCasesAlone(settings: PostgresSettings) {
  const opened = new OpenedParts();
  const log = pino({ level: "silent" });
  try {
    const cases = await openPostgresCases({ settings, registry: new Registry(), log }, opened);
    return { cases, close: () => opened.close() };
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}
