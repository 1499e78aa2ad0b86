import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CUSTOM_SOURCE, sourceNames, type Event } from "../../model/event.ts";
import type { Rule } from "../../model/rule.ts";
import type { EventEngine, NewEvent } from "../ports/event-engine.ts";
import type { RuleStore } from "../ports/rule-store.ts";
import { onFile } from "../files/store-failure.ts";
import { stateFile } from "../files/layout.ts";
import type { StateDatabase } from "../sqlite/state-database.ts";

// The word in front of the sources stands in the texts of events, in alerts and in rules. With another word the filters
// would speak of sources that no stored event has, and rules would wait for events that never come: once something
// bears the word, the folder keeps it.

/** How long somebody else may hold the file. */
const READ_MS_MAX = 5000;
/** Of a folder in which nothing bears a word yet. */
const NONE = "";

export class PlatformChanged extends Error {
  constructor(dataDir: string, known: string, given: string) {
    super(
      `The data folder ${dataDir} has events or rules of ${known}_network and the like: its platform word is ${known}, not ${given}.\n` +
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

  /** Whether something in the folder bears the word: from then on there is nothing more to notice. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Refuses another word than the one that something bears. */
  async agree(dataDir: string, events: Pick<EventEngine, "search" | "count">): Promise<void> {
    let known = this.#state.platform;
    if (known === undefined) {
      // A folder of an older version says it by its newest event alone.
      known = (await events.count()) === 0 ? NONE : await wordOfNewest(events);
      this.#state.platform = known;
    }
    if (known !== NONE && known !== this.#platform) throw new PlatformChanged(dataDir, known, this.#platform);
    this.#isKept = known !== NONE;
  }

  /** Before the events are stored. */
  noteEvents(events: readonly NewEvent[]): void {
    if (!this.#isKept && events.some(({ draft }) => this.#sources.has(draft.source))) this.#keep();
  }

  /** Rules that are kept bear it where they name a source. What is built in is written anew at each start. */
  around(rules: RuleStore): RuleStore {
    return {
      ...rules,
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

/** The word that something in the folder bears, beside a running server or without one; undefined where nothing does. */
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
