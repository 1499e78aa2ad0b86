import { Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import type { LRUCache } from "lru-cache";
import { Counter, type Registry } from "prom-client";
import { parseAddress } from "../lib/ip.ts";
import { reachOf } from "../lib/reach.ts";
import { recentlyUsed } from "../lib/recently-used.ts";

// Names for addresses, by reverse DNS. Whoever asks is answered at once with what is known; what is not is looked up
// afterwards, a little at a time, and is there when it is asked for again.

const NAME_CHARACTERS_MAX = 253;
const NAMES_MAX = 100_000;
const WAITING_MAX = 10_000;
const LOOKUPS_AT_ONCE_MAX = 8;
const LOOKUP_TIMEOUT_MS = 2000;
const LOOKUP_TRIES = 2;
const FOUND_MS = 6 * 3_600_000;
/** There is no name. */
const NONE_MS = 3_600_000;
/** The resolver did not say. */
const FAILED_MS = 60_000;

export interface HostnamesOptions {
  /** False: no address is ever looked up. */
  readonly enabled: boolean;
  /** `address` or `address:port` to ask; null asks whomever the system asks, and never about private addresses. */
  readonly resolver: string | null;
  readonly perSecondMax: number;
  readonly registry: Registry;
  readonly now?: () => number;
  readonly namesMax?: number;
  /** Whom the system asks, where it is not to be found out. */
  readonly systemServers?: readonly string[];
}

interface Known {
  readonly name: string | null;
  readonly untilMs: number;
}

type Outcome = "found" | "none" | "failed" | "dropped";

export class Hostnames {
  readonly #options: HostnamesOptions;
  readonly #now: () => number;
  readonly #resolver: Resolver;
  readonly #outcomes: Counter<"outcome">;
  readonly #known: LRUCache<string, Known>;
  /** Addresses in the order in which they were asked for. */
  readonly #waiting = new Set<string>();
  readonly #underWay = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #nextStartAt = 0;
  #closed = false;

  constructor(options: HostnamesOptions) {
    const { resolver, registry, now = Date.now, namesMax = NAMES_MAX, systemServers } = options;
    this.#options = options;
    this.#now = now;
    this.#known = recentlyUsed(namesMax);
    this.#resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: LOOKUP_TRIES });
    const servers = resolver === null ? systemServers : [resolver];
    if (servers) this.#resolver.setServers(servers);
    this.#outcomes = new Counter({
      name: "tocsin_hostname_lookups_total",
      help: "Addresses whose name was looked up, by what came of it; dropped: too many were waiting",
      labelNames: ["outcome"],
      registers: [registry],
    });
  }

  /** What is known now; an address in its one spelling. Null where there is no name, or none yet. */
  nameOf(address: string): string | null {
    const known = this.#known.get(address);
    if (known === undefined || known.untilMs <= this.#now()) this.#want(address);
    // A name that has grown old is better than none until it is confirmed.
    return known?.name ?? null;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting.clear();
    this.#resolver.cancel();
  }

  #want(address: string): void {
    const { enabled, resolver } = this.#options;
    if (!enabled || this.#closed || this.#waiting.has(address) || this.#underWay.has(address)) return;
    const reach = reachOf(address);
    if (reach === "nowhere" || (reach === "private" && resolver === null)) return;
    if (this.#waiting.size >= WAITING_MAX) {
      this.#outcomes.inc({ outcome: "dropped" });
      return;
    }
    this.#waiting.add(address);
    this.#startSome();
  }

  /** As many at once, and as many in a second, as there may be. */
  #startSome(): void {
    while (this.#waiting.size > 0 && this.#underWay.size < LOOKUPS_AT_ONCE_MAX) {
      const waitMs = this.#nextStartAt - performance.now();
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.#startSome();
        }, waitMs).unref();
        return;
      }
      this.#nextStartAt = performance.now() + 1000 / this.#options.perSecondMax;
      const [address] = this.#waiting as Iterable<string> as [string];
      this.#waiting.delete(address);
      this.#underWay.add(address);
      void this.#lookUp(address);
    }
  }

  async #lookUp(address: string): Promise<void> {
    const { outcome, name } = await this.#ask(address);
    this.#underWay.delete(address);
    if (this.#closed) return;
    this.#outcomes.inc({ outcome });
    // A resolver that fails for a while does not take away a name that is known.
    const before = outcome === "failed" ? (this.#known.get(address)?.name ?? null) : null;
    const keepMs = { found: FOUND_MS, none: NONE_MS, failed: FAILED_MS, dropped: 0 }[outcome];
    this.#known.set(address, { name: name ?? before, untilMs: this.#now() + keepMs });
    this.#startSome();
  }

  async #ask(address: string): Promise<{ outcome: Outcome; name: string | null }> {
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

/** Whoever owns an address says what its name is: only what can be a name is taken. */
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
