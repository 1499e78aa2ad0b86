import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { publicAddress } from "../lib/address-scope.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Event, EventDraft, JsonObject, JsonValue } from "../model/event.ts";
import { openGeo, type Geo } from "./geo.ts";
import type { ListStore } from "../store/ports/list-store.ts";
import { openLists, type Lists } from "./lists/lists.ts";
import { openManagedLists, type ManagedLists } from "./lists/managed-lists.ts";
import { RecentValues } from "./recent-values.ts";
import { openReputations, type Reputations, type ReputationsOptions } from "./reputations.ts";
import type { EnrichmentStatus, ListStatus } from "./enrichment-status.ts";

// Enriches events: the location and reputation of their public address, and the lists that contain their addresses and names.
// Enrichment of an incoming event uses only data in memory.

const POLL_MS = 5000;
const ADDRESSES_CACHED_MAX = 50_000;
const NAMES_CACHED_MAX = 50_000;
/** Includes an IPv6 zone. */
const ADDRESS_CHARACTERS_MAX = 64;
const NAME_CHARACTERS_MAX = 255;
/** Events of one alert that are read for their addresses. */
const EVENTS_READ_MAX = 10;

/** The public address of an event is the first of these fields with one. */
const ADDRESS_FIELDS = ["src_ip", "dst_ip"] as const;
/** Fields with host names that are looked up in lists. */
export const NAME_FIELDS = ["query", "host", "domain", "hostname", "server_name", "src_host", "dst_host"] as const;

export interface EnrichmentOptions {
  readonly settings: {
    readonly geo: boolean;
    readonly geoFile: string | null;
    readonly lists: readonly string[];
    readonly listsEveryMinutes: number;
    readonly abuseipdbKey: string | null;
    readonly abuseipdbPerDay: number;
    readonly abuseipdbUrl: string;
  };
  readonly dataDir: string;
  readonly listStore: ListStore;
  readonly reputationStore: ReputationsOptions["reputationStore"];
  readonly events: ReputationsOptions["events"];
  readonly annotate: ReputationsOptions["annotate"];
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly pollMs?: number;
}

type ReadEvent = (id: string) => Promise<Pick<Event, "raw" | "enrichment"> | undefined>;

interface AddressEnrichment {
  /** In canonical form; undefined if the address is not public. */
  readonly publicAddress: string | undefined;
  readonly place: JsonObject | undefined;
  readonly lists: readonly string[];
}

const UNKNOWN: AddressEnrichment = { publicAddress: undefined, place: undefined, lists: [] };

export async function openEnrichment(options: EnrichmentOptions): Promise<Enrichment> {
  const { settings, dataDir, listStore, reputationStore, events, annotate, registry, log } = options;
  const { now = Date.now, pollMs = POLL_MS } = options;
  const common = { registry, log, now };
  const geo = settings.geo ? await openGeo({ file: settings.geoFile, ...common }) : undefined;
  const everyMs = settings.listsEveryMinutes * 60_000;
  const fileNames = settings.lists.map((item) => item.slice(0, item.indexOf("=")));
  const managed = await openManagedLists({ store: listStore, fileNames, now, log });
  const lists = await openLists({ items: settings.lists, everyMs, dataDir, managed, ...common });
  const { abuseipdbKey: key, abuseipdbUrl: url, abuseipdbPerDay: perDay } = settings;
  const reputations =
    key === null
      ? undefined
      : await openReputations({ service: { url, key }, perDay, reputationStore, events, annotate, ...common });
  const readEvent: ReadEvent = async (id) => {
    try {
      const text = await events.get(id);
      return text === undefined ? undefined : (parseExact(text) as unknown as Event);
    } catch (error) {
      log.warn({ err: error, event: id }, "an event of an alert cannot be read for its reputation");
      return undefined;
    }
  };
  const enrichment = new Enrichment(geo, { lists, managed }, reputations, pollMs, reputationStore.shared && readEvent);
  new Gauge({
    name: "tocsin_enrichment_geo_loaded",
    help: "1 if a geolocation file is loaded",
    registers: [registry],
    collect() {
      this.set(geo && geo.status.readAtMs !== null ? 1 : 0);
    },
  });
  enrichment.startPolling();
  return enrichment;
}

export class Enrichment {
  readonly #geo: Geo | undefined;
  readonly #lists: Lists;
  /** Lists that are managed by the API. */
  readonly managedLists: ManagedLists;
  readonly #reputations: Reputations | undefined;
  readonly #addresses = new RecentValues<AddressEnrichment>(ADDRESSES_CACHED_MAX);
  readonly #names = new RecentValues<readonly string[]>(NAMES_CACHED_MAX);
  readonly #pollMs: number;
  /** Undefined if this node stores all events. */
  readonly #readEvent: ReadEvent | undefined;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #polls = new Set<Promise<void>>();
  #isClosed = false;

  /** Called with each stored event; undefined if nothing is added later. */
  readonly stored: ((id: string, draft: EventDraft) => void) | undefined;

  constructor(
    geo: Geo | undefined,
    { lists, managed }: { readonly lists: Lists; readonly managed: ManagedLists },
    reputations: Reputations | undefined,
    pollMs: number,
    readEvent: ReadEvent | undefined,
  ) {
    this.#readEvent = readEvent;
    this.#geo = geo;
    this.#lists = lists;
    this.managedLists = managed;
    managed.onChange = () => this.#clearCaches();
    this.#reputations = reputations;
    this.#pollMs = pollMs;
    this.stored = reputations && ((id, draft) => this.#requestReputation(reputations, id, draft));
  }

  /** Polls the geolocation file and the lists for changes, and fetches lists in the background. */
  startPolling(): void {
    for (const source of [...(this.#geo ? [this.#geo] : []), ...this.#lists.all]) this.#pollRepeatedly(source);
  }

  /** The enrichment of an event's raw data; undefined if there is none. */
  enrich(raw: JsonObject): JsonObject | undefined {
    const address = this.#publicAddressOf(raw);
    let found: JsonObject | undefined;
    if (address?.place) found = { geo: address.place };
    const report = address && this.#reputations?.reportOf(address.publicAddress!);
    if (report) (found ??= {})["abuse_ipdb"] = report;
    const lists = this.#lists.isEmpty ? undefined : this.#listsOf(raw);
    if (lists) (found ??= {})["lists"] = lists;
    return found;
  }

  /**
   * Requests the reputation of a new alert. The alert has the enrichment of the event that completed it, so a later reputation is for
   * the same address. Only if that event has no address, those of `eventIds`, the newest of the alert's events, are used.
   */
  alertMade(
    { id, enrichment }: { readonly id: string; readonly enrichment: JsonObject },
    completedBy: string | null,
    eventIds: readonly string[],
  ): void {
    if ("abuse_ipdb" in enrichment) return;
    const reputations = this.#reputations;
    if (!reputations) return;
    const others = "geo" in enrichment ? [] : eventIds;
    const readEvent = this.#readEvent;
    if (!readEvent) return reputations.alertMade(id, completedBy, others);
    const ids = [...(completedBy === null ? [] : [completedBy]), ...others];
    this.#track(
      this.#requestOfOthers(reputations, ids, readEvent).then(() => reputations.alertMade(id, completedBy, others)),
    );
  }

  /** Events of an alert that other nodes stored have to be read: only the node that stored an event knows its address. */
  async #requestOfOthers(reputations: Reputations, ids: readonly string[], readEvent: ReadEvent): Promise<void> {
    for (const id of ids.slice(0, EVENTS_READ_MAX)) {
      if (reputations.hasSeen(id)) continue;
      const event = await readEvent(id);
      if (event) this.#requestReputation(reputations, id, event);
    }
  }

  /** The status of lists in files and at URLs. */
  get fileLists(): readonly ListStatus[] {
    return this.#lists.fileStatus;
  }

  get status(): EnrichmentStatus {
    return {
      geo: this.#geo?.status ?? null,
      lists: this.#lists.status,
      reputation: this.#reputations?.status ?? null,
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#lists.close();
    this.managedLists.close();
    await Promise.all(this.#polls);
    await this.#reputations?.close();
  }

  #publicAddressOf(raw: JsonObject): AddressEnrichment | undefined {
    for (const field of ADDRESS_FIELDS) {
      const known = this.#addressOf(raw[field]);
      if (known.publicAddress !== undefined) return known;
    }
    return undefined;
  }

  #addressOf(value: JsonValue | undefined): AddressEnrichment {
    if (typeof value !== "string" || value.length > ADDRESS_CHARACTERS_MAX || value === "") return UNKNOWN;
    let known = this.#addresses.get(value);
    if (!known) {
      const address = publicAddress(value);
      const lists = this.#lists.isEmpty ? UNKNOWN.lists : this.#lists.withAddress(value);
      known = { publicAddress: address, place: address === undefined ? undefined : this.#geo?.placeOf(address), lists };
      this.#addresses.set(value, known);
    }
    return known;
  }

  #listsOf(raw: JsonObject): string[] | undefined {
    let found: readonly string[] | undefined;
    const add = (names: readonly string[]) => {
      if (names.length > 0) found = found ? [...new Set([...found, ...names])] : names;
    };
    for (const field of ADDRESS_FIELDS) add(this.#addressOf(raw[field]).lists);
    for (const field of NAME_FIELDS) {
      const value = raw[field];
      if (typeof value === "string" && value !== "" && value.length <= NAME_CHARACTERS_MAX) add(this.#nameOf(value));
    }
    return found as string[] | undefined;
  }

  #nameOf(text: string): readonly string[] {
    let known = this.#names.get(text);
    if (!known) this.#names.set(text, (known = this.#lists.withName(text)));
    return known;
  }

  #requestReputation(
    reputations: Reputations,
    id: string,
    { raw, enrichment }: Pick<EventDraft, "raw" | "enrichment">,
  ): void {
    if ("abuse_ipdb" in enrichment) return;
    const address = this.#publicAddressOf(raw)?.publicAddress;
    if (address !== undefined) reputations.request(address, id);
  }

  /** Polls a source for changes until the close. */
  #pollRepeatedly(source: { poll(): Promise<boolean> }): void {
    const poll = async () => {
      if (await source.poll()) this.#clearCaches();
      if (this.#isClosed) return;
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#track(poll());
      }, this.#pollMs).unref();
      this.#timers.add(timer);
    };
    this.#track(poll());
  }

  #track(polling: Promise<void>): void {
    const tracked = polling.finally(() => this.#polls.delete(tracked));
    this.#polls.add(tracked);
  }

  #clearCaches(): void {
    this.#addresses.clear();
    this.#names.clear();
  }
}
