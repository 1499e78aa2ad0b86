import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { Turns } from "../../lib/turns.ts";
import type { ListStatus } from "../status.ts";
import { List } from "./list.ts";
import { normalName } from "./read.ts";
import { addressNumbers, hasAddress, hasName, type ListTable } from "./table.ts";

// All lists: who is on which of them.

export interface ListsOptions {
  /** `<name>=<file or address>` */
  readonly items: readonly string[];
  readonly everyMs: number;
  readonly dataDir: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

export class Lists {
  readonly #lists: readonly List[];

  private constructor({ items, everyMs, dataDir, registry, log, now }: ListsOptions) {
    const registers = [registry];
    const names = items.map((item) => item.slice(0, item.indexOf("=")));
    const faults = new Counter({
      name: "tocsin_enrichment_list_faults_total",
      help: "Times that a list could not be read",
      labelNames: ["list"],
      registers,
    });
    const turns = new Turns();
    this.#lists = items.map((item, i) => {
      const name = names[i]!;
      return new List({
        name,
        from: item.slice(name.length + 1),
        everyMs,
        folder: join(dataDir, "lists"),
        now,
        turns,
        onFault: (message, error) => {
          faults.inc({ list: name });
          log.warn({ err: error, list: name }, message);
        },
      });
    });
    const lists = this.#lists;
    const gauge = (what: string, help: string, valueOf: (status: ListStatus) => number) =>
      new Gauge({
        name: `tocsin_enrichment_list_${what}`,
        help,
        labelNames: ["list"],
        registers,
        collect() {
          for (const { name, status } of lists) this.set({ list: name }, valueOf(status));
        },
      });
    gauge("entries", "Entries of a list", ({ addresses, networks, domains }) => addresses + networks + domains);
    gauge("bad_lines", "Lines of a list that are no entry", ({ badLines }) => badLines);
    gauge("left_out", "Entries of a list beyond those that it may have", ({ leftOut }) => leftOut);
  }

  /** Resolves with what is at hand; what must be fetched comes with the first poll. */
  static async open(options: ListsOptions): Promise<Lists> {
    const lists = new Lists(options);
    for (const list of lists.#lists) await list.open();
    return lists;
  }

  /** Each is looked at on its own: one that hangs does not hold up the others. */
  get all(): readonly { poll(): Promise<boolean> }[] {
    return this.#lists;
  }

  get isEmpty(): boolean {
    return this.#lists.length === 0;
  }

  /** Names of the lists that have the address, in the order of the settings. */
  withAddress(text: string): string[] {
    const address = addressNumbers(text);
    return address === undefined ? [] : this.#namesWhere((table) => hasAddress(table, address));
  }

  /** Names of the lists that have the domain, or one that it belongs to. */
  withName(text: string): string[] {
    const name = normalName(text);
    return name === undefined ? [] : this.#namesWhere((table) => hasName(table, name));
  }

  get status(): ListStatus[] {
    return this.#lists.map((list) => list.status);
  }

  close(): void {
    for (const list of this.#lists) list.close();
  }

  #namesWhere(holds: (table: ListTable) => boolean): string[] {
    const found: string[] = [];
    for (const { name, table } of this.#lists) if (table !== undefined && holds(table)) found.push(name);
    return found;
  }
}
