import type { DatabaseSync } from "node:sqlite";
import type { ExportJob } from "../../model/export.ts";
import { stateFile } from "./layout.ts";
import { openSmall } from "./sqlite.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS exports(id TEXT PRIMARY KEY, job TEXT NOT NULL) STRICT;
`;

export interface Used {
  readonly seq: number;
  readonly arrivedMs: number;
}

/** The small tables beside the journal. */
export class State {
  readonly #db: DatabaseSync;

  constructor(dataDir: string) {
    this.#db = openSmall(stateFile(dataDir), SCHEMA);
  }

  /** How far sequence numbers and times of arrival have been used, whether or not retention left the events. */
  get used(): Used {
    const rows = this.#db.prepare("SELECT name, value FROM facts").all() as { name: string; value: number }[];
    const fact = (name: string) => rows.find((row) => row.name === name)?.value ?? 0;
    return { seq: fact("used_seq"), arrivedMs: fact("used_arrival") };
  }

  set used({ seq, arrivedMs }: Used) {
    this.#db
      .prepare("INSERT OR REPLACE INTO facts(name, value) VALUES ('used_seq', ?), ('used_arrival', ?)")
      .run(seq, arrivedMs);
  }

  exports(): ExportJob[] {
    const rows = this.#db.prepare("SELECT job FROM exports ORDER BY id").all() as { job: string }[];
    return rows.map(({ job }) => JSON.parse(job) as ExportJob);
  }

  findExport(id: string): ExportJob | undefined {
    const row = this.#db.prepare("SELECT job FROM exports WHERE id = ?").get(id) as { job: string } | undefined;
    return row && (JSON.parse(row.job) as ExportJob);
  }

  putExport(job: ExportJob): void {
    this.#db.prepare("INSERT OR REPLACE INTO exports(id, job) VALUES (?, ?)").run(job.id, JSON.stringify(job));
  }

  removeExport(id: string): void {
    this.#db.prepare("DELETE FROM exports WHERE id = ?").run(id);
  }

  close(): void {
    this.#db.close();
  }
}
