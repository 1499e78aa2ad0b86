import { hostname } from "node:os";
import { resolve } from "node:path";
import pino from "pino";
import { Counter, Registry } from "prom-client";
import { OpenedParts } from "../lib/opened-parts.ts";
import { endingProcess } from "../lib/thread.ts";
import { openEmbeddedCases } from "./embedded/embedded-cases.ts";
import { openEmbeddedData, takeFolder, type EmbeddedOptions } from "./embedded/embedded-data.ts";
import { FileWatch } from "./embedded/file-watch.ts";
import { folderMigrationNotes, refuseUnfinishedMigration } from "./embedded/folder-migration.ts";
import { PlatformWord } from "./embedded/platform-word.ts";
import { openOpenSearchData, unreadableDays, type OpenSearchSettings } from "./opensearch/opensearch-data.ts";
import type { PostgresSettings } from "./postgres/postgres-address.ts";
import { openAllPostgresCases, openPostgresCases } from "./postgres/postgres-cases.ts";
import { holdServiceLease, refuseOthers } from "./postgres/service-lease.ts";
import { readPosition, readStoredRules as readEmbeddedRules } from "./sqlite/cases/rule-tables.ts";
import { openKeyDatabase } from "./sqlite/key-database.ts";
import { goneAmong, type GoneFile } from "./files/file-identity.ts";
import type { Layout } from "./files/layout.ts";
import { lockDataFolder } from "./embedded/lock.ts";
import { openStateDatabase } from "./sqlite/state-database.ts";
import type { Rule } from "../model/rule.ts";
import { StoreUnavailable } from "./ports/store-errors.ts";
import type { AlertStore } from "./ports/alert-store.ts";
import type { EventEngine } from "./ports/event-engine.ts";
import type { FlowEngine } from "./ports/flow-engine.ts";
import type { KeyStore } from "./ports/key-store.ts";
import type { Fence } from "./ports/lease-store.ts";
import type { CasePart, DataPart, FencedCases, MissingDay, Store } from "./ports/store.ts";

// Opens the store, or parts of it for the command line.

export { rebuildColumns } from "./embedded/embedded-data.ts";
export { areKeysLost } from "./files/layout.ts";
export { openSearchFileFaults } from "./opensearch/opensearch-client.ts";
export { postgresFileFaults } from "./postgres/postgres-address.ts";
export { readPlatformWord } from "./embedded/platform-word.ts";

export interface StoreOptions extends EmbeddedOptions {
  /** Keeps cases in PostgreSQL instead of the data folder. */
  readonly postgres?: PostgresSettings | undefined;
  /** Keeps events and flows in OpenSearch instead of the data folder. Needs PostgreSQL. */
  readonly opensearch?: OpenSearchSettings | undefined;
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const { registry, log } = options;
  const opened = new OpenedParts();
  try {
    const { cases, data, sharing, goneFiles } = options.opensearch
      ? await openCluster(options, options.opensearch, opened)
      : await openOnFolder(options, opened);
    const watch = new FileWatch({
      findGone: goneFiles,
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
    const check = async () => {
      const lacking = sharing ? await sharing.lacking() : [];
      if (lacking.length > 0) {
        const summary = `this node lacks ${lacking.join(" and ")}`;
        throw new StoreUnavailable("lacking", summary, undefined, { summary });
      }
      await Promise.all(checks.map((part) => part.check()));
    };
    const store = composeStore(cases, data, { check, close: () => opened.close() });
    return sharing ? sharedStore(store, data, sharing) : store;
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}

interface ComposedParts {
  readonly cases: CasePart;
  readonly data: DataPart;
  /** Undefined if no other node uses the store. */
  readonly sharing?: Sharing;
  goneFiles(): Promise<readonly GoneFile[]>;
}

/** Events and flows are in the data folder; cases are there or in PostgreSQL. */
async function openOnFolder(options: StoreOptions, opened: OpenedParts): Promise<ComposedParts> {
  const { dataDir, registry, log, now = Date.now } = options;
  await refuseUnfinishedMigration(folderMigrationNotes(dataDir), `The data folder ${dataDir}`);
  const postgres =
    options.postgres && (await openAllPostgresCases({ settings: options.postgres, registry, log, now }, opened));
  if (postgres) await refuseUnfinishedMigration(postgres.migration, DATABASE);
  const position = async () => (postgres ? postgres.detection.position() : readPosition(dataDir));
  const data = await openEmbeddedData(options, opened, position);
  if (postgres) {
    const held = await holdCases(postgres, options, opened);
    await data.start();
    const cases = { ...held, rules: data.platformWord.around(held.rules) };
    return { cases, data, goneFiles: () => data.goneFiles() };
  }
  const cases = await openEmbeddedCases({ dataDir, registry, log, now }, data, opened);
  await data.start();
  return { cases, data, goneFiles: async () => (await Promise.all([data.goneFiles(), cases.goneFiles()])).flat() };
}

/** Nothing stored is in the data folder: only spools, exports and downloads of this node, whose lock it holds. */
async function openCluster(
  options: StoreOptions,
  settings: OpenSearchSettings,
  opened: OpenedParts,
): Promise<ComposedParts> {
  const { dataDir, platform, indexPrefix, registry, log, now = Date.now } = options;
  if (!options.postgres) throw new Error("OpenSearch needs PostgreSQL beside it");
  const node = holderOf(dataDir);
  const lock = takeFolder(dataDir, opened);
  lock.sign();
  const postgres = await openAllPostgresCases({ settings: options.postgres, registry, log, now }, opened);
  await refuseUnfinishedMigration(postgres.migration, DATABASE);
  await refuseOthers(postgres.leases, "service");
  const place = {
    place: `The database of postgres.url, with the events of ${indexPrefix} in OpenSearch,`,
    remedy: "use another database with postgres.url and another index_prefix",
  };
  const word = new PlatformWord(postgres.platformWord, place, platform);
  const data = await openOpenSearchData(
    {
      settings,
      indexPrefix,
      platform,
      arrivals: postgres.arrivals,
      leases: postgres.leases,
      holder: node,
      noteEvents: (events) => (word.isKept ? undefined : word.noteEvents(events)),
      registry,
      log,
      now,
    },
    opened,
  );
  await word.agree(data.events);
  const cases = { ...postgres, rules: word.around(postgres.rules) };
  const sharing: Sharing = {
    node,
    under: (fence) => postgres.under(fence),
    lacking: () =>
      lackingOf([
        ["PostgreSQL", () => postgres.check()],
        ["the notices of other nodes", () => postgres.checkNotices()],
        ["OpenSearch", () => data.check()],
      ]),
  };
  return { cases, data, sharing, goneFiles: async () => goneAmong([lock.identity]) };
}

const DATABASE = "The database of postgres.url";

/** The folder is locked: no other process on this machine has it. */
const holderOf = (dataDir: string) => `${hostname()}:${resolve(dataDir)}`;

/** Cases that only one service at a time works on, which ends if another one has taken over. */
async function holdCases<Cases extends CasePart>(
  cases: Cases,
  { dataDir, log }: StoreOptions,
  opened: OpenedParts,
): Promise<Cases> {
  await refuseOthers(cases.leases, "nodes");
  const held = await holdServiceLease({
    leases: cases.leases,
    holder: holderOf(dataDir),
    onLost: endingProcess("the lease of the database"),
    log,
  });
  opened.add(() => held.close());
  return { ...cases, alerts: fencedAlerts(cases.alerts, held.lease) };
}

/** Detection commits only while the service holds the database. */
function fencedAlerts(alerts: AlertStore, fence: Fence): AlertStore {
  return {
    ...alerts,
    commit: (changes) => alerts.commit({ ...changes, fence: changes.fence ?? (changes.detected && fence) }),
  };
}

interface Sharing {
  readonly node: string;
  under(fence: Fence): FencedCases;
  /** What this node needs and does not have. */
  lacking(): Promise<readonly string[]>;
}

async function lackingOf(checks: readonly (readonly [name: string, () => Promise<void>])[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(checks.map(([, check]) => check()));
  return checks.flatMap(([name], nth) => {
    const outcome = outcomes[nth]!;
    if (outcome.status === "fulfilled") return [];
    const why = outcome.reason instanceof StoreUnavailable ? outcome.reason.summary : undefined;
    return [why === undefined ? name : `${name} (${why})`];
  });
}

function sharedStore(store: Store, data: DataPart, { node, under }: Sharing): Store {
  const fenced = (fence: Fence): Store => {
    const cases = under(fence);
    const beforeRemoval = () => store.leases.check(fence);
    return {
      ...store,
      ...cases,
      retention: { ...store.retention, save: (notes) => cases.retention.save(notes) },
      events: withRemoval(data.events, beforeRemoval),
      flows: withRemoval(data.flows, beforeRemoval),
    };
  };
  return { ...store, shared: { node, under: fenced } };
}

/** The engine with a check before data is removed, which no transaction can make part of the removal. */
function withRemoval<Engine extends EventEngine | FlowEngine>(engine: Engine, check: () => Promise<void>): Engine {
  const removeBefore = async (ms: number) => {
    await check();
    return engine.removeBefore(ms);
  };
  return new Proxy(engine, {
    get: (target, name) => {
      const value: unknown = name === "removeBefore" ? removeBefore : Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
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
  readonly opensearch?: OpenSearchSettings | undefined;
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
export async function openStorageNotes(places: Layout & StorePlaces): Promise<StorageNotes> {
  const { opensearch, postgres } = places;
  return opensearch && postgres ? clusterNotes(places, opensearch, postgres) : folderNotes(places);
}

export interface StorageNotes {
  missing(): Promise<readonly MissingDay[]>;
  heldAt(): Promise<number | null>;
  /** Works with or without a running server. Null if retention holds nothing back, else the clock that was confirmed. */
  confirm(): Promise<number | null>;
  /** Returns the number of rows; undefined if rows can only be unreadable, not lost. */
  acceptLosses(): number | undefined;
  close(): Promise<void>;
}

function retentionNotes(retention: CasePart["retention"]): Pick<StorageNotes, "heldAt" | "confirm"> {
  return {
    heldAt: async () => (await retention.notes()).heldAt,
    confirm: async () => {
      const { heldAt } = await retention.notes();
      if (heldAt !== null) await retention.save({ confirmedAt: heldAt });
      return heldAt;
    },
  };
}

async function clusterNotes(
  { indexPrefix }: Layout,
  opensearch: OpenSearchSettings,
  postgres: PostgresSettings,
): Promise<StorageNotes> {
  const { cases, close } = await openCasesAlone(postgres);
  return {
    ...retentionNotes(cases.retention),
    missing: () => unreadableDays(opensearch, indexPrefix),
    acceptLosses: () => undefined,
    close,
  };
}

async function folderNotes({ dataDir, indexPrefix, postgres }: Layout & StorePlaces): Promise<StorageNotes> {
  const state = await openStateDatabase({ dataDir, indexPrefix });
  const alone = postgres && (await openCasesAlone(postgres));
  const retention: CasePart["retention"] = alone?.cases.retention ?? {
    notes: async () => state.retention,
    save: async (notes) => state.saveRetention(notes),
  };
  return {
    ...retentionNotes(retention),
    missing: async () =>
      state
        .days()
        .filter(({ missing, removedAt }) => missing > 0 && removedAt === null)
        .map(({ kind, day, missing }) => ({ kind, day, rows: missing })),
    // Takes the lock, because a running server would overwrite the result with its own counts.
    acceptLosses: () => {
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
