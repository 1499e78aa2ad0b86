import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { publicAddress } from "../lib/reach.ts";
import type { EventDraft, JsonObject, JsonValue } from "../model/event.ts";
import { Geo } from "./geo.ts";
import { Lists } from "./lists/lists.ts";
import { Recent } from "./recent.ts";
import { Reputations, type ReputationsOptions } from "./reputations.ts";
import type { EnrichmentStatus } from "./status.ts";

// What the service adds to events: where the outside address is, who has reported it, which lists know it. Everything an
// event gets on its way in comes from memory.

const POLL_MS = 5000;
const ADDRESSES_REMEMBERED_MAX = 50_000;
const NAMES_REMEMBERED_MAX = 50_000;
/** With a zone at its end. */
const ADDRESS_CHARACTERS_MAX = 64;
const NAME_CHARACTERS_MAX = 255;

/** The outside address of an event is the first of these that is one of the internet. */
const ADDRESS_FIELDS = ["src_ip", "dst_ip"] as const;
/** Where names of hosts stand that lists are asked for. */
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
  readonly keeper: ReputationsOptions["keeper"];
  readonly events: ReputationsOptions["events"];
  readonly annotate: ReputationsOptions["annotate"];
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly pollMs?: number;
}

/** What is known of the text of an address. */
interface KnownAddress {
  /** In its one spelling, where it is one of the internet. */
  readonly outside: string | undefined;
  readonly place: JsonObject | undefined;
  readonly lists: readonly string[];
}

const UNKNOWN: KnownAddress = { outside: undefined, place: undefined, lists: [] };

export class Enrichment {
  readonly #geo: Geo | undefined;
  readonly #lists: Lists;
  readonly #reputations: Reputations | undefined;
  readonly #addresses = new Recent<KnownAddress>(ADDRESSES_REMEMBERED_MAX);
  readonly #names = new Recent<readonly string[]>(NAMES_REMEMBERED_MAX);
  readonly #pollMs: number;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #looking = new Set<Promise<void>>();
  #isClosed = false;

  /** Hears of what is stored, where what is found out later is to be added. */
  readonly stored: ((id: string, draft: EventDraft) => void) | undefined;

  private constructor(geo: Geo | undefined, lists: Lists, reputations: Reputations | undefined, pollMs: number) {
    this.#geo = geo;
    this.#lists = lists;
    this.#reputations = reputations;
    this.#pollMs = pollMs;
    this.stored = reputations && ((id, draft) => this.#wantReputation(reputations, id, draft));
  }

  static async open(options: EnrichmentOptions): Promise<Enrichment> {
    const { settings, dataDir, keeper, events, annotate, registry, log, now = Date.now, pollMs = POLL_MS } = options;
    const common = { registry, log, now };
    const geo = settings.geo ? await Geo.open({ file: settings.geoFile, ...common }) : undefined;
    const everyMs = settings.listsEveryMinutes * 60_000;
    const lists = await Lists.open({ items: settings.lists, everyMs, dataDir, ...common });
    const { abuseipdbKey: key, abuseipdbUrl: url, abuseipdbPerDay: perDay } = settings;
    const reputations =
      key === null
        ? undefined
        : new Reputations({ service: { url, key }, perDay, keeper, events, annotate, ...common });
    const enrichment = new Enrichment(geo, lists, reputations, pollMs);
    new Gauge({
      name: "tocsin_enrichment_geo_loaded",
      help: "1 where places of addresses are known",
      registers: [registry],
      collect() {
        this.set(geo && geo.status.readAtMs !== null ? 1 : 0);
      },
    });
    // What must be fetched is fetched now, and nobody waits for it.
    for (const source of [...(geo ? [geo] : []), ...lists.all]) enrichment.#follow(source);
    return enrichment;
  }

  /** What is known now of what the source said; undefined where that is nothing. */
  enrich(raw: JsonObject): JsonObject | undefined {
    const outside = this.#outsideOf(raw);
    let found: JsonObject | undefined;
    if (outside?.place) found = { geo: outside.place };
    const report = outside && this.#reputations?.reportOf(outside.outside!);
    if (report) (found ??= {})["abuse_ipdb"] = report;
    const lists = this.#lists.isEmpty ? undefined : this.#listsOf(raw);
    if (lists) (found ??= {})["lists"] = lists;
    return found;
  }

  /**
   * An alert was made. Its enrichment is that of the event that completed it, and what is found out later is to be about the
   * same address; only where that event has none, one of `eventIds` will do, the newest of the alert's events.
   */
  alertMade(
    { id, enrichment }: { readonly id: string; readonly enrichment: JsonObject },
    completedBy: string | null,
    eventIds: readonly string[],
  ): void {
    if ("abuse_ipdb" in enrichment) return;
    const others = "geo" in enrichment ? [] : eventIds;
    this.#reputations?.alertMade(id, completedBy, others);
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
    await Promise.all(this.#looking);
    await this.#reputations?.close();
  }

  #outsideOf(raw: JsonObject): KnownAddress | undefined {
    for (const field of ADDRESS_FIELDS) {
      const known = this.#addressOf(raw[field]);
      if (known.outside !== undefined) return known;
    }
    return undefined;
  }

  #addressOf(value: JsonValue | undefined): KnownAddress {
    if (typeof value !== "string" || value.length > ADDRESS_CHARACTERS_MAX || value === "") return UNKNOWN;
    let known = this.#addresses.get(value);
    if (!known) {
      const outside = publicAddress(value);
      const lists = this.#lists.isEmpty ? UNKNOWN.lists : this.#lists.withAddress(value);
      known = { outside, place: outside === undefined ? undefined : this.#geo?.placeOf(outside), lists };
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

  #wantReputation(reputations: Reputations, id: string, { raw, enrichment }: EventDraft): void {
    if ("abuse_ipdb" in enrichment) return;
    const outside = this.#outsideOf(raw)?.outside;
    if (outside !== undefined) reputations.want(outside, id);
  }

  /** Looks again and again whether there is something new. */
  #follow(source: { poll(): Promise<boolean> }): void {
    const look = async () => {
      if (await source.poll()) this.#forget();
      if (this.#isClosed) return;
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#track(look());
      }, this.#pollMs).unref();
      this.#timers.add(timer);
    };
    this.#track(look());
  }

  #track(looking: Promise<void>): void {
    const tracked = looking.finally(() => this.#looking.delete(tracked));
    this.#looking.add(tracked);
  }

  #forget(): void {
    this.#addresses.clear();
    this.#names.clear();
  }
}
