import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

/** Prepared statements. Only for texts that stand in the code: there is an end to them. */
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
