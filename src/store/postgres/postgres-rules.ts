import { randomUUID } from "node:crypto";
import { parseExact } from "../../lib/exact-json.ts";
import { SerialQueue } from "../../lib/serial-queue.ts";
import type { Rule, RuleStats } from "../../model/rule.ts";
import { RuleConflict, type RuleStore, type SharedRules } from "../ports/rule-store.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";
import { forgetMatches, readMatchStats } from "./postgres-matches.ts";
import { NoticedListeners } from "./postgres-notices.ts";

export const POSTGRES_RULES_SCHEMA = `
CREATE TABLE rules(id text COLLATE "C" PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, revision int8 NOT NULL,
  document text NOT NULL);
`;

/** Any number: rules change one after the other, so that the checks of one see the changes of all before it. */
const RULES_LOCK = 7_846_019;
/** The fact that counts changes. */
const VERSION = "rules_version";

export class PostgresRules implements RuleStore {
  readonly #database: PostgresDatabase;
  /** Of two calls in this process the first comes first, whichever connection is faster. */
  readonly #turns = new SerialQueue();

  readonly #changed: NoticedListeners;
  readonly shared: SharedRules;

  constructor(database: PostgresDatabase, listener: PostgresListener) {
    this.#database = database;
    this.#changed = new NoticedListeners(listener, "tocsin_rules", randomUUID());
    this.shared = {
      version: async () => {
        const [row] = await database.query<{ value: number }>("SELECT value FROM facts WHERE name = $1", [VERSION]);
        return row?.value ?? 0;
      },
      changedSince: (known) => this.#changedSince(known),
      onChange: (heard) => this.#changed.add(heard),
    };
  }

  async list(): Promise<Rule[]> {
    const rows = await this.#database.query<{ document: string }>("SELECT document FROM rules ORDER BY name");
    return rows.map(({ document }) => parseExact(document) as Rule);
  }

  put(rule: Rule): Promise<void> {
    return this.putMany([rule]);
  }

  putMany(rules: readonly Rule[]): Promise<void> {
    return this.#change(async (transaction) => {
      for (const rule of rules) await putRule(transaction, rule);
    });
  }

  remove(id: string): Promise<void> {
    return this.#change(async (transaction) => {
      await transaction.run("DELETE FROM rules WHERE id = $1", [plainText(id)]);
      await forgetMatches(transaction, id);
      await forgetSeen(transaction, id);
    });
  }

  stats(ids: readonly string[], nowMs: number): Promise<RuleStats[]> {
    return readMatchStats(this.#database, ids, nowMs);
  }

  async #changedSince(known: ReadonlyMap<string, number>): Promise<{ changed: Rule[]; removed: string[] }> {
    const rows = await this.#database.query<{ id: string; revision: number }>("SELECT id, revision FROM rules");
    const stored = new Map(rows.map(({ id, revision }) => [textOfPlain(id), revision]));
    const differing = [...stored].filter(([id, revision]) => known.get(id) !== revision).map(([id]) => plainText(id));
    const documents =
      differing.length === 0
        ? []
        : await this.#database.query<{ document: string }>("SELECT document FROM rules WHERE id = ANY($1)", [
            differing,
          ]);
    return {
      changed: documents.map(({ document }) => parseExact(document) as Rule),
      removed: [...known.keys()].filter((id) => !stored.has(id)),
    };
  }

  #change(work: (transaction: PostgresQueries) => Promise<void>): Promise<void> {
    return this.#turns.take(() =>
      this.#database.transact(async (transaction) => {
        await transaction.query("SELECT pg_advisory_xact_lock($1)", [RULES_LOCK]);
        await work(transaction);
        await transaction.run(
          "INSERT INTO facts(name, value) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET value = facts.value + 1",
          [VERSION],
        );
        await this.#changed.announce(transaction);
      }),
    );
  }
}

async function putRule(transaction: PostgresQueries, rule: Rule): Promise<void> {
  const [id, name] = [plainText(rule.id), plainText(rule.name)];
  const [row] = await transaction.query<{ revision: number; document: string }>(
    "SELECT revision, document FROM rules WHERE id = $1",
    [id],
  );
  // Built-in rules are stored only once changed, so the first stored revision may be a later one.
  const isNext = row ? row.revision === rule.revision - 1 : rule.builtin || rule.revision === 1;
  if (!isNext) throw new RuleConflict("changed", `the rule ${rule.name} was changed or deleted in the meantime`);
  const namesakes = await transaction.query("SELECT 1 FROM rules WHERE name = $1 AND id <> $2", [name, id]);
  if (namesakes.length > 0) throw new RuleConflict("name_taken", `another rule has the name ${rule.name}`);
  await transaction.run(
    `INSERT INTO rules(id, name, revision, document) VALUES ($1, $2, $3, $4)
     ON CONFLICT (id) DO UPDATE SET name = $2, revision = $3, document = $4`,
    [id, name, rule.revision, JSON.stringify(rule)],
  );
  // A rule that starts over has seen nothing.
  const activeAfter = row ? ((parseExact(row.document) as Rule).activeAfter ?? null) : null;
  if (activeAfter !== rule.activeAfter) await forgetSeen(transaction, rule.id);
}

async function forgetSeen(transaction: PostgresQueries, ruleId: string): Promise<void> {
  await transaction.run("DELETE FROM rule_seen WHERE rule_id = $1", [plainText(ruleId)]);
}
