import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

/** A cache of prepared statements. It has no limit, so pass only texts that are constant in the code. */
export class Statements {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  read(text: string): StatementSync {
    let statement = this.#prepared.get(text);
    if (!statement) {
      statement = this.#db.prepare(text);
      this.#prepared.set(text, statement);
    }
    return statement;
  }

  run(text: string, ...values: SQLInputValue[]): void {
    this.read(text).run(...values);
  }
}
