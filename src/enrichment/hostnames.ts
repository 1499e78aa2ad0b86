import { Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import type { LRUCache } from "lru-cache";
import { Counter, type Registry } from "prom-client";
import { parseAddress } from "../lib/ip.ts";
import { addressScope } from "../lib/address-scope.ts";
import { createLruCache } from "../lib/lru.ts";

// Host names of addresses, by reverse DNS. A request is answered at once from the cache; a missing name is looked up in the
// background, at a limited rate, for later requests.

const NAME_CHARACTERS_MAX = 253;
const NAMES_MAX = 100_000;
const PENDING_MAX = 10_000;
const IN_FLIGHT_MAX = 8;
const LOOKUP_TIMEOUT_MS = 2000;
const LOOKUP_TRIES = 2;
const FOUND_MS = 6 * 3_600_000;
/** Cache time of an address without a name. */
const NONE_MS = 3_600_000;
/** Cache time after a failed lookup. */
const FAILED_MS = 60_000;

export interface HostnamesOptions {
  /** False disables all lookups. */
  readonly enabled: boolean;
  /** `address` or `address:port` of the resolver; null uses the system's, which never gets queries for private addresses. */
  readonly resolver: string | null;
  readonly perSecondMax: number;
  readonly registry: Registry;
  readonly now?: () => number;
  readonly namesMax?: number;
  /** Overrides the system's resolvers. */
  readonly systemServers?: readonly string[];
}

interface CachedName {
  readonly name: string | null;
  readonly untilMs: number;
}

type LookupOutcome = "found" | "none" | "failed" | "dropped";

export class Hostnames {
  readonly #options: HostnamesOptions;
  readonly #now: () => number;
  readonly #resolver: Resolver;
  readonly #outcomes: Counter<"outcome">;
  readonly #cache: LRUCache<string, CachedName>;
  /** Addresses in order of request. */
  readonly #pending = new Set<string>();
  readonly #inFlight = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #nextStartAt = 0;
  #closed = false;

  constructor(options: HostnamesOptions) {
    const { resolver, registry, now = Date.now, namesMax = NAMES_MAX, systemServers } = options;
    this.#options = options;
    this.#now = now;
    this.#cache = createLruCache(namesMax);
    this.#resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: LOOKUP_TRIES });
    const servers = resolver === null ? systemServers : [resolver];
    if (servers) this.#resolver.setServers(servers);
    this.#outcomes = new Counter({
      name: "tocsin_hostname_lookups_total",
      help: "Reverse DNS lookups of addresses, by outcome; dropped: too many were pending",
      labelNames: ["outcome"],
      registers: [registry],
    });
  }

  /** The cached name of a canonical address; null if there is none, or none yet. */
  nameOf(address: string): string | null {
    const known = this.#cache.get(address);
    if (known === undefined || known.untilMs <= this.#now()) this.#request(address);
    // A stale name is better than none until it is confirmed.
    return known?.name ?? null;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#pending.clear();
    this.#resolver.cancel();
  }

  #request(address: string): void {
    const { enabled, resolver } = this.#options;
    if (!enabled || this.#closed || this.#pending.has(address) || this.#inFlight.has(address)) return;
    const reach = addressScope(address);
    if (reach === "nowhere" || (reach === "private" && resolver === null)) return;
    if (this.#pending.size >= PENDING_MAX) {
      this.#outcomes.inc({ outcome: "dropped" });
      return;
    }
    this.#pending.add(address);
    this.#startLookups();
  }

  /** Starts pending lookups within the limits on concurrency and rate. */
  #startLookups(): void {
    while (this.#pending.size > 0 && this.#inFlight.size < IN_FLIGHT_MAX) {
      const waitMs = this.#nextStartAt - performance.now();
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.#startLookups();
        }, waitMs).unref();
        return;
      }
      this.#nextStartAt = performance.now() + 1000 / this.#options.perSecondMax;
      const [address] = this.#pending as Iterable<string> as [string];
      this.#pending.delete(address);
      this.#inFlight.add(address);
      void this.#lookUp(address);
    }
  }

  async #lookUp(address: string): Promise<void> {
    const { outcome, name } = await this.#ask(address);
    this.#inFlight.delete(address);
    if (this.#closed) return;
    this.#outcomes.inc({ outcome });
    // A failed lookup keeps the known name.
    const before = outcome === "failed" ? (this.#cache.get(address)?.name ?? null) : null;
    const keepMs = { found: FOUND_MS, none: NONE_MS, failed: FAILED_MS, dropped: 0 }[outcome];
    this.#cache.set(address, { name: name ?? before, untilMs: this.#now() + keepMs });
    this.#startLookups();
  }

  async #ask(address: string): Promise<{ outcome: LookupOutcome; name: string | null }> {
    try {
      const names = (await this.#resolver.resolvePtr(reverseName(address))).map(cleanName);
      const name = names.find((candidate) => candidate !== undefined);
      return name === undefined ? { outcome: "none", name: null } : { outcome: "found", name };
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      return { outcome: code === "ENOTFOUND" || code === "ENODATA" ? "none" : "failed", name: null };
    }
  }
}

/** Accepts only valid host names, since the owner of an address controls its name. */
function cleanName(name: string): string | undefined {
  const clean = name.replace(/\.$/, "").toLowerCase();
  return clean.length <= NAME_CHARACTERS_MAX && /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(clean) ? clean : undefined;
}

/** `1.2.0.192.in-addr.arpa` */
function reverseName(address: string): string {
  if (!isIPv6(address)) return `${address.split(".").reverse().join(".")}.in-addr.arpa`;
  const nibbles = parseAddress(address)!.toString(16).padStart(32, "0");
  return `${[...nibbles].reverse().join(".")}.ip6.arpa`;
}
