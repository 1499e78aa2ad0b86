import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CUSTOM_SOURCE, sourceNames, type Event } from "../../model/event.ts";
import type { Rule } from "../../model/rule.ts";
import type { EventEngine, NewEvent } from "../ports/event-engine.ts";
import type { RuleStore } from "../ports/rule-store.ts";
import { onFile } from "../files/store-failure.ts";
import { stateFile } from "../files/layout.ts";
import type { StateDatabase } from "../sqlite/state-database.ts";

// Source names begin with the platform word, and events, alerts and rules contain source names. With another word, filters
// and rules would name sources that no event has. So the folder keeps its word once something stored uses it.

/** How long to wait for another process that holds the file. */
const READ_MS_MAX = 5000;
/** The word of a folder in which nothing uses one yet. */
const NONE = "";

export class PlatformChanged extends Error {
  constructor(dataDir: string, known: string, given: string) {
    super(
      `The data folder ${dataDir} has events or rules with sources such as ${known}_network: its platform word is ${known}, not ${given}.\n` +
        `Start with --platform ${known}, or use another folder with --data-dir.`,
    );
    this.name = "PlatformChanged";
  }
}

export class PlatformWord {
  readonly #state: StateDatabase;
  readonly #platform: string;
  readonly #sources: ReadonlySet<string>;
  #isKept = false;

  constructor(state: StateDatabase, platform: string) {
    this.#state = state;
    this.#platform = platform;
    this.#sources = new Set(sourceNames(platform).filter((source) => source !== CUSTOM_SOURCE));
  }

  /** True once something in the folder uses the word; from then on events and rules need no check. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Throws PlatformChanged if the folder keeps another word. */
  async agree(dataDir: string, events: Pick<EventEngine, "search" | "count">): Promise<void> {
    let known = this.#state.platform;
    if (known === undefined) {
      // A folder of an older version does not store the word; its newest event shows it.
      known = (await events.count()) === 0 ? NONE : await wordOfNewest(events);
      this.#state.platform = known;
    }
    if (known !== NONE && known !== this.#platform) throw new PlatformChanged(dataDir, known, this.#platform);
    this.#isKept = known !== NONE;
  }

  /** Called before the events are stored. */
  noteEvents(events: readonly NewEvent[]): void {
    if (!this.#isKept && events.some(({ draft }) => this.#sources.has(draft.source))) this.#keep();
  }

  /** A rule store that notes the sources in rules. Built-in rules are written at every start and do not count. */
  around(rules: RuleStore): RuleStore {
    return {
      list: () => rules.list(),
      remove: (id) => rules.remove(id),
      stats: (ids, nowMs) => rules.stats(ids, nowMs),
      put: async (rule) => {
        this.#noteRules([rule]);
        await rules.put(rule);
      },
      putMany: async (many) => {
        this.#noteRules(many);
        await rules.putMany(many);
      },
    };
  }

  #noteRules(rules: readonly Rule[]): void {
    if (this.#isKept) return;
    const own = JSON.stringify(rules.filter(({ builtin }) => !builtin));
    if ([...this.#sources].some((source) => own.includes(JSON.stringify(source)))) this.#keep();
  }

  #keep(): void {
    this.#state.platform = this.#platform;
    this.#isKept = true;
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
