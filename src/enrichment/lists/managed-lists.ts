import type { Logger } from "pino";
import { SerialQueue } from "../../lib/serial-queue.ts";
import {
  isExpired,
  LIST_ENTRIES_MAX,
  MANAGED_ENTRIES_MAX,
  MANAGED_LISTS_MAX,
  type ListEntry,
  type WatchList,
} from "../../model/watch-list.ts";
import type { EntryChanges, ListStore } from "../../store/ports/list-store.ts";
import type { ListStatus } from "../enrichment-status.ts";
import type { ListTable } from "./list-table.ts";
import { parseList, type ParsedList } from "./parse-list.ts";

// Lists that are managed by the API. All entries are in memory; a change is durable, and in force, when its call returns.

const RETRY_MS = 1000;

/** Thrown if a list cannot be changed as requested. */
export class ListRefused extends Error {
  readonly kind: "not_found" | "taken" | "limit";
  constructor(kind: ListRefused["kind"], message: string) {
    super(message);
    this.name = "ListRefused";
    this.kind = kind;
  }
}

export type EntryInput = Pick<ListEntry, "value" | "type" | "note" | "expiresAt">;
export type ListInput = Pick<WatchList, "description" | "kind">;

export interface ManagedList {
  readonly list: WatchList;
  /** By value, in the order of the values. */
  readonly entries: ReadonlyMap<string, ListEntry>;
}

/** A list after a change, and what the change did to its entries. */
export interface ListChange extends ManagedList {
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
}

interface LoadedList extends ManagedList {
  /** The entries that have not expired. */
  readonly content: ParsedList;
  /** When the next entry expires. */
  readonly expiresAt: number;
}

export interface ManagedListsOptions {
  readonly store: ListStore;
  /** Names of the lists in files. */
  readonly fileNames: readonly string[];
  readonly now: () => number;
  readonly log: Logger;
}

export async function openManagedLists(options: ManagedListsOptions): Promise<ManagedLists> {
  const lists = new ManagedLists(options);
  await lists.load();
  return lists;
}

export class ManagedLists {
  readonly #store: ListStore;
  readonly #fileNames: readonly string[];
  readonly #now: () => number;
  /** By name, in the order of the names. */
  #lists: ReadonlyMap<string, LoadedList> = new Map();
  readonly #changes = new SerialQueue();
  #onChange: () => void = () => undefined;
  readonly #log: Logger;
  /** Lists that other nodes changed and this one has not read yet; undefined: all. */
  readonly #outdated = new Set<string | undefined>();
  readonly #stopListening: (() => void) | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor({ store, fileNames, now, log }: ManagedListsOptions) {
    this.#store = store;
    this.#fileNames = fileNames;
    this.#now = now;
    this.#log = log;
    this.#stopListening = store.shared?.onChange((name) => {
      // Changes that follow each other closely are read once.
      const isRequested = this.#outdated.size > 0;
      this.#outdated.add(name);
      if (!isRequested) void this.#changes.take(() => this.#takeOver());
    });
  }

  close(): void {
    this.#stopListening?.();
    clearTimeout(this.#retry);
  }

  async load(): Promise<void> {
    const stored = await this.#store.all();
    const names = new Set(stored.map(({ list }) => list.name));
    this.#lists = new Map([...this.#lists].filter(([name]) => names.has(name)));
    for (const { list, entries } of stored) this.#keep(list, new Map(entries.map((entry) => [entry.value, entry])));
  }

  /** Reads what other nodes have changed. */
  async #takeOver(): Promise<void> {
    const names = [...this.#outdated];
    this.#outdated.clear();
    try {
      if (names.includes(undefined)) await this.load();
      else for (const name of names as string[]) await this.#takeOverList(name);
    } catch (error) {
      this.#outdated.add(undefined);
      this.#log.warn({ err: error }, "lists that another node changed cannot be read yet; trying again");
      this.#retry = setTimeout(() => void this.#changes.take(() => this.#takeOver()), RETRY_MS).unref();
    }
    this.#onChange();
  }

  async #takeOverList(name: string): Promise<void> {
    const stored = await this.#store.shared?.get(name);
    if (stored) this.#keep(stored.list, new Map(stored.entries.map((entry) => [entry.value, entry])));
    else this.#lists = new Map([...this.#lists].filter(([other]) => other !== name));
  }

  /** Called whenever the entries in force have changed. */
  set onChange(listener: () => void) {
    this.#onChange = listener;
  }

  get all(): ManagedList[] {
    return [...this.#lists.values()];
  }

  /** Names and entries in force, for look-ups. */
  *tables(): Iterable<{ readonly name: string; readonly table: ListTable }> {
    for (const [name, { content }] of this.#lists) yield { name, table: content.table };
  }

  get isEmpty(): boolean {
    return this.#lists.size === 0;
  }

  get status(): ListStatus[] {
    return [...this.#lists.values()].map(({ list, content }) => {
      const { addresses, networks, domains } = content;
      const figures = { addresses, networks, domains, badLines: 0, leftOut: 0 };
      return { name: list.name, from: "api", ...figures, readAtMs: list.updatedAt, fault: null };
    });
  }

  find(name: string): ManagedList | undefined {
    return this.#lists.get(name);
  }

  create(name: string, input: ListInput, entries: readonly EntryInput[], author: string): Promise<ListChange> {
    return this.#changes.take(async () => {
      if (this.#lists.has(name)) throw new ListRefused("taken", `there is already a list ${name}`);
      if (this.#fileNames.includes(name)) {
        throw new ListRefused("taken", `the settings have a list ${name}, which is read from a file or URL`);
      }
      if (this.#lists.size >= MANAGED_LISTS_MAX) {
        throw new ListRefused("limit", `there are ${MANAGED_LISTS_MAX} lists, the maximum; delete one first`);
      }
      const now = this.#now();
      const list: WatchList = { name, ...input, createdAt: now, updatedAt: now, author };
      return this.#put(list, { isReplacement: true, set: entries.map((entry) => newEntry(entry, now, author)) });
    });
  }

  /** Replaces the entries, and of description and kind what is given. */
  replace(
    name: string,
    input: Partial<ListInput>,
    entries: readonly EntryInput[],
    author: string,
  ): Promise<ListChange> {
    return this.#change(name, author, ({ list, entries: known }, now) => [
      { ...list, ...input },
      { isReplacement: true, set: entries.map((entry) => newEntry(entry, now, author, known.get(entry.value))) },
    ]);
  }

  /** Adds entries, and replaces the note and the expiry of known ones. */
  addEntries(name: string, entries: readonly EntryInput[], author: string): Promise<ListChange> {
    return this.#change(name, author, ({ list, entries: known }, now) => [
      list,
      { set: entries.map((entry) => newEntry(entry, now, author, known.get(entry.value))) },
    ]);
  }

  removeEntries(name: string, values: readonly string[], author: string): Promise<ListChange> {
    return this.#change(name, author, ({ list }) => [list, { removed: values }]);
  }

  remove(name: string): Promise<void> {
    return this.#changes.take(async () => {
      this.#require(name);
      await this.#store.remove(name);
      this.#lists = new Map([...this.#lists].filter(([other]) => other !== name));
      this.#onChange();
    });
  }

  /** Drops entries that have expired from those in force. Returns true if there are any. */
  async poll(): Promise<boolean> {
    const now = this.#now();
    let hasChanged = false;
    for (const { list, entries, expiresAt } of this.#lists.values()) {
      if (expiresAt > now) continue;
      this.#keep(list, entries);
      hasChanged = true;
    }
    return hasChanged;
  }

  #require(name: string): LoadedList {
    const known = this.#lists.get(name);
    if (!known) throw new ListRefused("not_found", `there is no list ${name} that is managed by the API`);
    return known;
  }

  #change(
    name: string,
    author: string,
    change: (current: LoadedList, now: number) => [WatchList, EntryChanges],
  ): Promise<ListChange> {
    return this.#changes.take(async () => {
      const now = this.#now();
      const [list, changes] = change(this.#require(name), now);
      return this.#put({ ...list, updatedAt: now, author }, changes);
    });
  }

  async #put(list: WatchList, changes: EntryChanges): Promise<ListChange> {
    const known: ReadonlyMap<string, ListEntry> = this.#lists.get(list.name)?.entries ?? new Map();
    const entries = new Map(changes.isReplacement ? [] : known);
    for (const value of changes.removed ?? []) entries.delete(value);
    for (const entry of changes.set ?? []) entries.set(entry.value, entry);
    this.#requireRoom(list.name, entries.size, known.size);
    await this.#store.put(list, changes);
    const kept = this.#keep(list, new Map([...entries].sort(([a], [b]) => (a < b ? -1 : 1))));
    this.#onChange();
    const updated = (changes.set ?? []).filter(({ value }) => known.has(value)).length;
    const added = (changes.set ?? []).length - updated;
    return { ...kept, added, updated, removed: known.size + added - entries.size };
  }

  #requireRoom(name: string, size: number, sizeBefore: number): void {
    if (size <= sizeBefore) return;
    if (size > LIST_ENTRIES_MAX) {
      const message = `the list ${name} would have ${size} entries, more than ${LIST_ENTRIES_MAX}; use a list in a file`;
      throw new ListRefused("limit", message);
    }
    let total = size - sizeBefore;
    for (const { entries } of this.#lists.values()) total += entries.size;
    if (total > MANAGED_ENTRIES_MAX) {
      const message = `the lists would have ${total} entries in all, more than ${MANAGED_ENTRIES_MAX}; use lists in files`;
      throw new ListRefused("limit", message);
    }
  }

  #keep(list: WatchList, entries: ReadonlyMap<string, ListEntry>): ManagedList {
    const now = this.#now();
    const active = [...entries.values()].filter((entry) => !isExpired(entry, now));
    const content = parseList(active.map(({ value }) => value).join("\n"));
    const expiresAt = active.reduce((next, entry) => Math.min(next, entry.expiresAt ?? Infinity), Infinity);
    const kept = { list, entries, content, expiresAt };
    const lists = new Map(this.#lists).set(list.name, kept);
    this.#lists = new Map([...lists].sort(([a], [b]) => (a < b ? -1 : 1)));
    return kept;
  }
}

function newEntry(input: EntryInput, now: number, author: string, known?: ListEntry): ListEntry {
  const { value, type, note, expiresAt } = input;
  return { value, type, note, expiresAt, addedAt: known?.addedAt ?? now, author: known?.author ?? author };
}
