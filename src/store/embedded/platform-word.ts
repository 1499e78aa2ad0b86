import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CUSTOM_SOURCE, sourceNames, type Event } from "../../model/event.ts";
import type { Rule } from "../../model/rule.ts";
import type { EventEngine, NewEvent } from "../ports/event-engine.ts";
import type { PlatformWordStore } from "../ports/platform-word-store.ts";
import type { RuleStore } from "../ports/rule-store.ts";
import { onFile } from "../files/store-failure.ts";
import { stateFile } from "../files/layout.ts";
import type { StateDatabase } from "../sqlite/state-database.ts";

// Source names begin with the platform word, and events, alerts and rules contain source names. With another word, filters
// and rules would name sources that no event has. So the store keeps its word once something stored uses it.

/** How long to wait for another process that holds the file. */
const READ_MS_MAX = 5000;
/** The word of a folder in which nothing uses one yet. */
const NONE = "";

/** Where the word is kept, in words for a message. */
export interface WordPlace {
  readonly place: string;
  readonly remedy: string;
}

export const folderPlace = (dataDir: string): WordPlace => ({
  place: `The data folder ${dataDir}`,
  remedy: "use another folder with --data-dir",
});

export function folderWord(state: StateDatabase): PlatformWordStore {
  return {
    read: async () => state.platform,
    keep: async (word) => (state.platform = word),
  };
}

export class PlatformChanged extends Error {
  constructor({ place, remedy }: WordPlace, known: string, given: string) {
    super(
      `${place} has events or rules with sources such as ${known}_network: its platform word is ${known}, not ${given}.\n` +
        `Start with --platform ${known}, or ${remedy}.`,
    );
    this.name = "PlatformChanged";
  }
}

export class PlatformWord {
  readonly #store: PlatformWordStore;
  readonly #place: WordPlace;
  readonly #platform: string;
  readonly #sources: ReadonlySet<string>;
  #isKept = false;

  constructor(store: PlatformWordStore, place: WordPlace, platform: string) {
    this.#store = store;
    this.#place = place;
    this.#platform = platform;
    this.#sources = new Set(sourceNames(platform).filter((source) => source !== CUSTOM_SOURCE));
  }

  /** True once something stored uses the word; from then on events and rules need no check. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Throws PlatformChanged if another word is kept. */
  async agree(events: Pick<EventEngine, "search" | "count">): Promise<void> {
    let known = await this.#store.read();
    if (known === undefined) {
      // A folder of an older version does not store the word; its newest event shows it.
      known = (await events.count()) === 0 ? NONE : await wordOfNewest(events);
      await this.#store.keep(known);
    }
    this.#require(known === NONE ? this.#platform : known);
    this.#isKept = known !== NONE;
  }

  /** Called before the events are stored. */
  async noteEvents(events: readonly NewEvent[]): Promise<void> {
    if (!this.#isKept && events.some(({ draft }) => this.#sources.has(draft.source))) await this.#keep();
  }

  /** A rule store that notes the sources in rules. Built-in rules are written at every start and do not count. */
  around(rules: RuleStore): RuleStore {
    return {
      shared: rules.shared,
      list: () => rules.list(),
      remove: (id) => rules.remove(id),
      stats: (ids, nowMs) => rules.stats(ids, nowMs),
      put: async (rule) => {
        await this.#noteRules([rule]);
        await rules.put(rule);
      },
      putMany: async (many) => {
        await this.#noteRules(many);
        await rules.putMany(many);
      },
    };
  }

  async #noteRules(rules: readonly Rule[]): Promise<void> {
    if (this.#isKept) return;
    const own = JSON.stringify(rules.filter(({ builtin }) => !builtin));
    if ([...this.#sources].some((source) => own.includes(JSON.stringify(source)))) await this.#keep();
  }

  async #keep(): Promise<void> {
    this.#require(await this.#store.keep(this.#platform));
    this.#isKept = true;
  }

  #require(known: string): void {
    if (known !== this.#platform) throw new PlatformChanged(this.#place, known, this.#platform);
  }
}

async function wordOfNewest(events: Pick<EventEngine, "search">): Promise<string> {
  const { items } = await events.search({
    condition: {
      kind: "not",
      of: { kind: "test", field: "source", operator: "equals", value: CUSTOM_SOURCE, ignoreCase: false },
    },
    sort: [],
    limit: 1,
    aggs: [],
  });
  const [newest] = items.map((text) => JSON.parse(text) as Event);
  return newest ? newest.source.slice(0, newest.source.lastIndexOf("_")) : NONE;
}

/** The word that the folder keeps, undefined if none; works with and without a running server. */
export function readPlatformWord(dataDir: string): string | undefined {
  const path = stateFile(dataDir);
  if (!existsSync(path)) return undefined;
  return onFile(path, () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: READ_MS_MAX });
    try {
      const hasTable = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'words'").get() !== undefined;
      const row = hasTable ? db.prepare("SELECT value FROM words WHERE name = 'platform'").get() : undefined;
      return (row as { value: string } | undefined)?.value || undefined;
    } finally {
      db.close();
    }
  });
}
