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
    const statement = this.read(text);
    // Every run also reads the last row number, and that of the word index does not fit into a number of JavaScript.
    statement.setReadBigInts(true);
    statement.run(...values);
  }
}
