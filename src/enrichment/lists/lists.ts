import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { SerialQueue } from "../../lib/serial-queue.ts";
import type { ListStatus } from "../enrichment-status.ts";
import { openList, type List } from "./list.ts";
import type { ManagedLists } from "./managed-lists.ts";
import { normaliseName } from "./parse-list.ts";
import { addressNumbers, hasAddress, hasName, type ListTable } from "./list-table.ts";

// All lists, and the lookup of addresses and names in them.

export interface ListsOptions {
  /** `<name>=<file or URL>` */
  readonly items: readonly string[];
  readonly everyMs: number;
  readonly dataDir: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  /** Lists that are managed by the API, if there is a store. */
  readonly managed?: ManagedLists | undefined;
}

/** Opens lists with their local content; the first poll fetches the others. */
export async function openLists({
  items,
  everyMs,
  dataDir,
  registry,
  log,
  now,
  managed,
}: ListsOptions): Promise<Lists> {
  const registers = [registry];
  const faults = new Counter({
    name: "tocsin_enrichment_list_faults_total",
    help: "Failed attempts to load a list",
    labelNames: ["list"],
    registers,
  });
  const loadQueue = new SerialQueue();
  const lists: List[] = [];
  for (const item of items) {
    const name = item.slice(0, item.indexOf("="));
    const list = await openList({
      name,
      from: item.slice(name.length + 1),
      everyMs,
      folder: join(dataDir, "lists"),
      now,
      loadQueue,
      onFault: (message, error) => {
        faults.inc({ list: name });
        log.warn({ err: error, list: name }, message);
      },
    });
    lists.push(list);
  }
  const all = new Lists(lists, managed);
  const gauge = (what: string, help: string, valueOf: (status: ListStatus) => number) =>
    new Gauge({
      name: `tocsin_enrichment_list_${what}`,
      help,
      labelNames: ["list"],
      registers,
      collect() {
        this.reset();
        for (const status of all.status) this.set({ list: status.name }, valueOf(status));
      },
    });
  gauge("entries", "Entries of a list", ({ addresses, networks, domains }) => addresses + networks + domains);
  gauge("bad_lines", "Invalid lines of a list", ({ badLines }) => badLines);
  gauge("left_out", "Entries of a list beyond the limit", ({ leftOut }) => leftOut);
  return all;
}

export class Lists {
  readonly #lists: readonly List[];
  readonly #managed: ManagedLists | undefined;

  constructor(lists: readonly List[], managed: ManagedLists | undefined) {
    this.#lists = lists;
    this.#managed = managed;
  }

  /** Lists are polled separately, so that a hanging one does not delay the others. */
  get all(): readonly { poll(): Promise<boolean> }[] {
    return this.#managed ? [...this.#lists, this.#managed] : this.#lists;
  }

  get isEmpty(): boolean {
    return this.#lists.length === 0 && (this.#managed?.isEmpty ?? true);
  }

  /** Names of the lists with the address: those in files in the order of the settings, then those of the API by name. */
  withAddress(text: string): string[] {
    const address = addressNumbers(text);
    return address === undefined ? [] : this.#namesWhere((table) => hasAddress(table, address));
  }

  /** Names of the lists with the domain or a parent domain. */
  withName(text: string): string[] {
    const name = normaliseName(text);
    return name === undefined ? [] : this.#namesWhere((table) => hasName(table, name));
  }

  get status(): ListStatus[] {
    return [...this.fileStatus, ...(this.#managed?.status ?? [])];
  }

  get fileStatus(): ListStatus[] {
    return this.#lists.map((list) => list.status);
  }

  close(): void {
    for (const list of this.#lists) list.close();
  }

  #namesWhere(holds: (table: ListTable) => boolean): string[] {
    const found: string[] = [];
    for (const { name, table } of this.#lists) if (table !== undefined && holds(table)) found.push(name);
    for (const { name, table } of this.#managed?.tables() ?? []) {
      // The settings may have got a list of the same name later.
      if (!found.includes(name) && holds(table)) found.push(name);
    }
    return found;
  }
}
