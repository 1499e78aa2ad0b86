import { JsonText } from "../../../lib/thread.ts";
import type { IdentifiedDefinition, RuleDefinition } from "../../../model/rule-definition.ts";
import type { Statements } from "./prepared-statements.ts";

// The definitions of rules that alerts refer to, each stored once.

export const DEFINITIONS_SCHEMA = `
ALTER TABLE alerts ADD COLUMN definition_id TEXT;
CREATE INDEX alerts_definition ON alerts(definition_id) WHERE definition_id IS NOT NULL;
CREATE TABLE definitions(id TEXT PRIMARY KEY, definition TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

export class Definitions {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  get(id: string): JsonText<RuleDefinition> | undefined {
    const row = this.#sql.read("SELECT definition FROM definitions WHERE id = ?").get(id);
    return row && new JsonText((row as { definition: string }).definition);
  }

  /** Must run in a transaction. */
  add(definitions: readonly IdentifiedDefinition[]): void {
    for (const { id, definition } of definitions) {
      if (this.#sql.read("SELECT 1 FROM definitions WHERE id = ?").get(id)) continue;
      this.#sql.run("INSERT INTO definitions VALUES (?, ?)", id, JSON.stringify(definition));
    }
  }

  /** Must run in a transaction. Few definitions have no alert left, so that one pass after a removal suffices. */
  removeUnused(): void {
    this.#sql.run(
      "DELETE FROM definitions WHERE NOT EXISTS (SELECT 1 FROM alerts WHERE definition_id = definitions.id)",
    );
  }
}
