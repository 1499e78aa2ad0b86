import type { Logger } from "pino";
import { Registry } from "prom-client";
import type { OpenedParts } from "../../lib/opened-parts.ts";
import type { EventArchive, FlowArchive } from "../ports/archive.ts";
import type { ArrivalLog } from "../ports/arrival-log.ts";
import type { NewEvent } from "../ports/event-engine.ts";
import type { LeaseStore } from "../ports/lease-store.ts";
import type { DataPart, MissingDay, StorageSpace } from "../ports/store.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { ArchivedEvents } from "./archived-events.ts";
import { ArchivedFlows } from "./archived-flows.ts";
import { ArrivalSequencer } from "./arrival-sequencer.ts";
import { dailyIndexName } from "./daily-index.ts";
import { EventArrivals } from "./event-arrivals.ts";
import { EventShards } from "./event-shards.ts";
import { LeasedRole } from "../leases/leased-role.ts";
import { OpenSearchClient, type OpenSearchConnection } from "./opensearch-client.ts";
import { eventsName, openOpenSearchEvents, putEventTemplate } from "./opensearch-events.ts";
import { flowsName, openOpenSearchFlows } from "./opensearch-flows.ts";
import { StoredDays } from "./stored-days.ts";

// Events and flows in OpenSearch. One node at a time continues the order in which events arrived.

const SPACE_MS = 30_000;

export interface OpenSearchSettings extends OpenSearchConnection {
  readonly shards: number;
  readonly replicas: number;
}

export interface OpenSearchDataOptions {
  readonly settings: OpenSearchSettings;
  readonly indexPrefix: string;
  readonly platform: string;
  /** The order of arrival, and the lease of the node that continues it. */
  readonly arrivals: ArrivalLog;
  readonly leases: LeaseStore;
  /** Unique to this process. */
  readonly holder: string;
  /** Called before events are stored. */
  readonly noteEvents: (events: readonly NewEvent[]) => Promise<void> | undefined;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

/** OpenSearch cannot be used at the start. The message is for the operator. */
class UnusableOpenSearch extends Error {
  constructor(cause: Error) {
    super(`${cause.message}.\nCheck opensearch.addresses, and that a node runs there and accepts these credentials.`, {
      cause,
    });
    this.name = "UnusableOpenSearch";
  }
}

/** Rejects with UnusableOpenSearch if it does not answer. */
export async function openOpenSearchData(options: OpenSearchDataOptions, opened: OpenedParts): Promise<DataPart> {
  try {
    return await openParts(options, opened);
  } catch (error) {
    throw error instanceof StoreUnavailable ? new UnusableOpenSearch(error) : error;
  }
}

async function openParts(options: OpenSearchDataOptions, opened: OpenedParts): Promise<DataPart> {
  const { settings, indexPrefix, platform, arrivals, leases, holder, noteEvents, registry, log, now } = options;
  const { shards, replicas } = settings;
  const client = new OpenSearchClient(settings, registry);
  opened.add(() => client.close());
  const names = { events: eventsName(indexPrefix), flows: flowsName(indexPrefix) };
  const eventShards = new EventShards(client, names.events);
  const sequencer = new ArrivalSequencer({ shards: eventShards, arrivals, now, registry, log });
  const days = {
    events: new StoredDays(client, "events", names.events),
    flows: new StoredDays(client, "flows", names.flows),
  };
  const shared = { client, indexPrefix, shards, replicas, log };
  const events = await openOpenSearchEvents({
    ...shared,
    platform,
    arrivals: new EventArrivals({ shards: eventShards, arrivals, onStored: () => sequencer.request() }),
    days: days.events,
    noteEvents,
    now,
  });
  const flows = await openOpenSearchFlows(shared);
  const role = new LeasedRole({
    name: "arrivals",
    holder,
    leases,
    registry,
    log,
    work: (lease, signal, begun) => {
      begun();
      return sequencer.run(lease, signal);
    },
  });
  opened.add(() => role.close());
  const space = cached(SPACE_MS, () => client.space(`${names.events}-2*,${names.flows}-2*`));
  return {
    events,
    flows,
    rowsBefore: (kind, beforeMs) => days[kind].rowsBefore(beforeMs),
    missing: (kind, range) => days[kind].missing(range),
    refused: async () => events.refused + flows.refused,
    space,
    // Without today's indices nothing can be stored. Other days that cannot be read are among the missing ones. An index
    // that does not exist yet is matched by no pattern, which is no fault.
    check: () => client.check([names.events, names.flows].map((name) => `${dailyIndexName(name, now())}*`).join(",")),
  };
}

/** Events and flows as a whole, to copy them. Rejects with UnusableOpenSearch if it does not answer. */
export async function openOpenSearchArchive(
  options: Pick<OpenSearchDataOptions, "settings" | "indexPrefix" | "arrivals" | "registry" | "log" | "now">,
  opened: OpenedParts,
): Promise<{ events: EventArchive; flows: FlowArchive }> {
  const { settings, indexPrefix, arrivals, registry, log, now } = options;
  const { shards, replicas } = settings;
  const client = new OpenSearchClient(settings, registry);
  opened.add(() => client.close());
  const name = eventsName(indexPrefix);
  const eventShards = new EventShards(client, name);
  try {
    const shared = { client, indexPrefix, shards, replicas, log };
    await putEventTemplate(shared);
    const flows = await openOpenSearchFlows(shared);
    return {
      events: new ArchivedEvents({ client, name, shards: eventShards, arrivals, log, now }),
      flows: new ArchivedFlows(client, flowsName(indexPrefix), flows),
    };
  } catch (error) {
    throw error instanceof StoreUnavailable ? new UnusableOpenSearch(error) : error;
  }
}

/** Days that cannot be read now, for the command line. */
export async function unreadableDays(settings: OpenSearchSettings, indexPrefix: string): Promise<MissingDay[]> {
  const client = new OpenSearchClient(settings, new Registry());
  try {
    const days = [
      new StoredDays(client, "events", eventsName(indexPrefix)),
      new StoredDays(client, "flows", flowsName(indexPrefix)),
    ];
    return (await Promise.all(days.map((each) => each.missing()))).flat();
  } finally {
    await client.close();
  }
}

/** The value of the last call unless it is older than this. Concurrent callers share one. */
function cached(freshMs: number, read: () => Promise<StorageSpace>): () => Promise<StorageSpace> {
  let reading: Promise<StorageSpace> | undefined;
  let readAt = -Infinity;
  return () => {
    const now = performance.now();
    if (reading && now - readAt < freshMs) return reading;
    readAt = now;
    const current = read();
    reading = current;
    current.catch(() => {
      // The next caller tries again.
      if (reading === current) reading = undefined;
    });
    return current;
  };
}
