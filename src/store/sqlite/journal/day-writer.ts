import type { DatabaseSync, StatementSync } from "node:sqlite";
import { BLOCK_SHIFT, WordsMerger } from "./day-file.ts";
import type { DayGroup } from "./commit-group.ts";

/** Writes groups of events to the file of a day. */
export class DayWriter {
  readonly db: DatabaseSync;
  readonly insertWords: StatementSync;
  readonly merger: WordsMerger;
  readonly begin: StatementSync;
  readonly commit: StatementSync;
  readonly rollback: StatementSync;
  readonly #insertEvent: StatementSync;
  readonly #insertId: StatementSync;
  readonly #upsertBlock: StatementSync;

  constructor(db: DatabaseSync) {
    this.db = db;
    this.#insertEvent = db.prepare("INSERT INTO events(seq, ts, body, token) VALUES (?, ?, ?, ?)");
    this.#insertId = db.prepare("INSERT INTO ids(seq, id, arrived) VALUES (?, ?, ?)");
    this.insertWords = db.prepare("INSERT INTO words(rowid, text) VALUES (?, ?)");
    this.merger = new WordsMerger(db);
    this.#upsertBlock =
      db.prepare(`INSERT INTO blocks(block, min_ts, max_ts, rows) VALUES (?1, ?2, ?3, ?4) ON CONFLICT(block)
        DO UPDATE SET min_ts = min(min_ts, ?2), max_ts = max(max_ts, ?3), rows = rows + ?4`);
    this.begin = db.prepare("BEGIN IMMEDIATE");
    this.commit = db.prepare("COMMIT");
    this.rollback = db.prepare("ROLLBACK");
  }

  /** Durable when it returns. */
  write({ seqs, times, bodies, words, tokens, foreign }: DayGroup): void {
    this.begin.run();
    try {
      for (let i = 0; i < seqs.length; i++) {
        this.#insertEvent.run(seqs[i]!, times[i]!, bodies[i]!, tokens[i]!);
        this.insertWords.run(seqs[i]!, words[i]!);
        const id = foreign?.[i];
        if (id) this.#insertId.run(seqs[i]!, id.id, id.arrivedMs);
      }
      this.merger.run(words);
      for (let i = 0; i < seqs.length;) {
        const block = Math.floor(seqs[i]! / 2 ** BLOCK_SHIFT);
        let [min, max, rows] = [times[i]!, times[i]!, 0];
        for (; i < seqs.length && Math.floor(seqs[i]! / 2 ** BLOCK_SHIFT) === block; i++, rows++) {
          min = Math.min(min, times[i]!);
          max = Math.max(max, times[i]!);
        }
        this.#upsertBlock.run(block, min, max, rows);
      }
      this.commit.run();
    } catch (error) {
      // A full disk may have rolled back already; either way the connection must be out of the transaction.
      if (this.db.isTransaction) this.rollback.run();
      throw error;
    }
  }
}
