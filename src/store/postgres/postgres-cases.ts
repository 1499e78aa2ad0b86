import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { OpenedParts } from "../../lib/opened-parts.ts";
import type { MigrationNotes } from "../ports/archive.ts";
import type { ArrivalLog } from "../ports/arrival-log.ts";
import type { PlatformWordStore } from "../ports/platform-word-store.ts";
import type { Fence } from "../ports/lease-store.ts";
import type { CasePart, FencedCases } from "../ports/store.ts";
import { fencedDatabase } from "./fenced-database.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import type { PostgresSettings } from "./postgres-address.ts";
import { POSTGRES_ALERTS_SCHEMA } from "./postgres-alert-schema.ts";
import { openPostgresAlerts } from "./postgres-alerts.ts";
import { postgresMigrationNotes } from "./postgres-archive.ts";
import { POSTGRES_ARRIVALS_SCHEMA, postgresArrivals } from "./postgres-arrivals.ts";
import { PostgresDatabase } from "./postgres-database.ts";
import { POSTGRES_DETECTION_SCHEMA } from "./postgres-detection.ts";
import { KEY_GRANTS_SCHEMA, KEYS_SCHEMA, PostgresKeys } from "./postgres-keys.ts";
import { LEASE_STATUS_SCHEMA, LEASES_SCHEMA, postgresLeases } from "./postgres-leases.ts";
import { PostgresListener } from "./postgres-listener.ts";
import { POSTGRES_LISTS_SCHEMA, postgresLists } from "./postgres-lists.ts";
import { POSTGRES_MATCHES_SCHEMA } from "./postgres-matches.ts";
import { migratePostgres, type PostgresMigration } from "./postgres-migrations.ts";
import { NoticedListeners } from "./postgres-notices.ts";
import { POSTGRES_NOTIFICATIONS_SCHEMA } from "./postgres-notifications.ts";
import { POSTGRES_RULES_SCHEMA, PostgresRules } from "./postgres-rules.ts";
import { POSTGRES_SESSIONS_SCHEMA, PostgresSessions } from "./postgres-sessions.ts";
import {
  POSTGRES_STATE_SCHEMA,
  postgresAnalysis,
  postgresExports,
  postgresPlatformWord,
  postgresReputations,
  postgresRetention,
} from "./postgres-state.ts";
import { POSTGRES_VIEWS_SCHEMA, PostgresViews } from "./postgres-views.ts";

// Cases in PostgreSQL, which several processes may use at once.

const POSTGRES_MIGRATIONS: readonly PostgresMigration[] = [
  KEYS_SCHEMA +
    POSTGRES_SESSIONS_SCHEMA +
    POSTGRES_VIEWS_SCHEMA +
    POSTGRES_LISTS_SCHEMA +
    POSTGRES_STATE_SCHEMA +
    LEASES_SCHEMA,
  POSTGRES_ALERTS_SCHEMA +
    POSTGRES_NOTIFICATIONS_SCHEMA +
    POSTGRES_RULES_SCHEMA +
    POSTGRES_MATCHES_SCHEMA +
    POSTGRES_DETECTION_SCHEMA,
  POSTGRES_ARRIVALS_SCHEMA,
  LEASE_STATUS_SCHEMA + KEY_GRANTS_SCHEMA,
];

export interface PostgresCasesOptions {
  readonly settings: PostgresSettings;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: (() => number) | undefined;
}

/** Opens the connections and brings the schema up to date. */
export async function openPostgres(
  options: PostgresCasesOptions,
  opened: OpenedParts,
): Promise<{ database: PostgresDatabase; listener: PostgresListener }> {
  const database = new PostgresDatabase(options);
  opened.add(() => database.close());
  await migratePostgres(database, POSTGRES_MIGRATIONS);
  const { registry, log, now } = options;
  const listener = new PostgresListener({ database, registry, log, now });
  await listener.start();
  opened.add(() => listener.close());
  return { database, listener };
}

/** What commands use by themselves, without alerts. */
export type PostgresCases = Omit<CasePart, "alerts" | "detection" | "notifications" | "dueAlerts" | "refused">;

export async function openPostgresCases(options: PostgresCasesOptions, opened: OpenedParts): Promise<PostgresCases> {
  const { database, listener } = await openPostgres(options, opened);
  return postgresCases(database, listener, exportNotices(listener));
}

export interface AllPostgresCases extends CasePart {
  /** For events that are kept elsewhere. */
  readonly arrivals: ArrivalLog;
  readonly platformWord: PlatformWordStore;
  readonly migration: MigrationNotes;
  under(fence: Fence): FencedCases;
  /** Rejects while changes by other nodes may go unnoticed. */
  checkNotices(): Promise<void>;
}

/** All of it. Resolves once this node has all alerts in its index. */
export async function openAllPostgresCases(
  options: PostgresCasesOptions,
  opened: OpenedParts,
): Promise<AllPostgresCases> {
  const { registry, log, now = Date.now } = options;
  const { database, listener } = await openPostgres(options, opened);
  const { close, under, ...alerts } = await openPostgresAlerts({ database, listener, registry, log, now });
  opened.add(close);
  const exportChanges = exportNotices(listener);
  return {
    ...postgresCases(database, listener, exportChanges),
    ...alerts,
    under: (fence) => {
      const fenced = fencedDatabase(database, fence);
      return { ...under(fence), exports: postgresExports(fenced, exportChanges), retention: postgresRetention(fenced) };
    },
    checkNotices: async () => {
      if (!listener.isCurrent) throw new StoreUnavailable("unreachable", "no notices of PostgreSQL arrive");
    },
    arrivals: postgresArrivals(database, listener),
    platformWord: postgresPlatformWord(database),
    migration: postgresMigrationNotes(database),
  };
}

function exportNotices(listener: PostgresListener): NoticedListeners {
  return new NoticedListeners(listener, "tocsin_exports", randomUUID());
}

function postgresCases(
  database: PostgresDatabase,
  listener: PostgresListener,
  exportChanges: NoticedListeners,
): PostgresCases {
  const sessions = new PostgresSessions(database, listener);
  return {
    rules: new PostgresRules(database, listener),
    analysis: postgresAnalysis(database, listener),
    keys: new PostgresKeys(database, listener, () => sessions.forget()),
    sessions,
    views: new PostgresViews(database),
    exports: postgresExports(database, exportChanges),
    lists: postgresLists(database, listener),
    reputations: postgresReputations(database),
    retention: postgresRetention(database),
    leases: postgresLeases(database, listener),
    check: () => database.check(),
  };
}
