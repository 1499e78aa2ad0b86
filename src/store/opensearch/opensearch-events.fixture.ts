import pino from "pino";
import { Registry } from "prom-client";
import { describe } from "vitest";
import { postgresPrograms } from "../../../test/cluster/postgres.ts";
import { ownPrefix, RUNS_SHARE, sharedOpenSearch } from "../../../test/cluster/shared-opensearch.ts";
import { testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { openUnderTest } from "../embedded/embedded-store.fixture.ts";
import { postgresArrivals } from "../postgres/postgres-arrivals.ts";
import { openPostgres } from "../postgres/postgres-cases.ts";
import { postgresLeases } from "../postgres/postgres-leases.ts";
import { postgresSettings } from "../postgres/postgres-store.fixture.ts";
import type { OpenStoreUnderTest } from "../testing/contract.ts";
import { ArrivalSequencer } from "./arrival-sequencer.ts";
import { EventArrivals } from "./event-arrivals.ts";
import { EventShards } from "./event-shards.ts";
import { OpenSearchClient, type OpenSearchConnection } from "./opensearch-client.ts";
import { eventsName, openOpenSearchEvents, type OpenSearchEvents } from "./opensearch-events.ts";
import { StoredDays } from "./stored-days.ts";

// Stores under test whose events are in a real OpenSearch, and the order of their arrival in a real PostgreSQL.

/** Short, because tests wait for nearly every event that they store. */
const REFRESH_MS = 20;
const LEASE_MS = 600_000;

/** Runs tests that need both engines with the URL of OpenSearch, or says why it skips them. */
export async function withEventEngines(name: string, tests: (url: string) => void): Promise<void> {
  const shared = await sharedOpenSearch();
  const missing = "missing" in shared ? shared.missing : postgresPrograms() ? undefined : "PostgreSQL is not installed";
  if (missing === undefined && "url" in shared) describe(name, () => tests(shared.url));
  else describe.skip(`${name} (skipped: ${missing})`, () => tests(""));
}

export interface EventsUnderTest {
  readonly events: OpenSearchEvents;
  readonly days: StoredDays;
  readonly client: OpenSearchClient;
  readonly registry: Registry;
  readonly prefix: string;
  readonly database: string;
  /** Stops everything; the data stay. */
  close(): Promise<void>;
  /** Stops everything and removes the indices. */
  end(): Promise<void>;
}

export interface EventsUnderTestOptions extends Partial<OpenSearchConnection> {
  readonly prefix?: string;
  readonly database?: string;
  readonly shards?: number;
  readonly now?: () => number;
  /** Another node already continues the order of arrival. */
  readonly isFollower?: boolean;
}

export async function openEventsUnderTest(url: string, options: EventsUnderTestOptions = {}): Promise<EventsUnderTest> {
  const { prefix = ownPrefix(), shards = 1, now = Date.now, isFollower = false, ...rest } = options;
  const { database: databaseUrl = await testDatabase(), ...connection } = rest;
  const registry = new Registry();
  const log = pino({ level: "silent" });
  const parts = new OpenedParts();
  const client = new OpenSearchClient({ addresses: [url], ...connection }, registry);
  parts.add(() => client.close());
  const { database, listener } = await openPostgres({ settings: postgresSettings(databaseUrl), registry, log }, parts);
  const arrivals = postgresArrivals(database, listener);
  const eventShards = new EventShards(client, eventsName(prefix));
  const sequencer = new ArrivalSequencer({ shards: eventShards, arrivals, now, registry, log });
  const days = new StoredDays(client, "events", eventsName(prefix));
  const events = await openOpenSearchEvents({
    client,
    days,
    indexPrefix: prefix,
    platform: "platform",
    shards,
    replicas: 0,
    refreshMs: REFRESH_MS,
    arrivals: new EventArrivals({ shards: eventShards, arrivals, onStored: () => sequencer.request() }),
    log,
    now,
  });
  if (!isFollower) {
    const leases = postgresLeases(database, listener);
    const stop = new AbortController();
    const lease = (await leases.acquire("arrivals", "test", LEASE_MS))!;
    const running = sequencer.run(lease, stop.signal);
    parts.add(async () => {
      stop.abort();
      await running;
    });
  }
  return {
    events,
    days,
    client,
    registry,
    prefix,
    database: databaseUrl,
    close: () => parts.close(),
    end: async () => {
      const kind = { operation: "end" };
      const query = { expand_wildcards: "open,closed" };
      await client.send(kind, { method: "DELETE", path: `/${prefix}-events-*`, query });
      await client.send(kind, { method: "DELETE", path: `/_index_template/${prefix}-events` });
      await parts.close();
    },
  };
}

/** The embedded store with its events replaced. */
export const openWithEvents = (url: string, shards: number): OpenStoreUnderTest =>
  Object.assign(
    async (now: () => number) => {
      const embedded = await openUnderTest(now);
      let opened = await openEventsUnderTest(url, { shards, now });
      return {
        store: { ...embedded.store, events: opened.events },
        reopen: async () => {
          const { prefix, database } = opened;
          await opened.close();
          opened = await openEventsUnderTest(url, { shards, now, prefix, database });
          return { ...(await embedded.reopen()), events: opened.events };
        },
        end: async () => {
          await opened.end();
          await embedded.end();
        },
      };
    },
    { runsShare: RUNS_SHARE },
  );
