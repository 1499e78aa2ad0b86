import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { serveThread } from "../../../lib/thread.ts";
import { dayFile, type Layout } from "../../files/layout.ts";

// Moves committed pages from the write-ahead log into the day's file, so that the writer does not have to.

const layout = workerData as Layout;

function checkpointLog(day: number, mode: "PASSIVE" | "TRUNCATE"): void {
  const path = dayFile(layout, day);
  if (!existsSync(path)) return;
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA busy_timeout = 0; PRAGMA synchronous = FULL;");
    db.prepare(`PRAGMA wal_checkpoint(${mode})`).get();
  } finally {
    db.close();
  }
}

const api = {
  checkpoint(day: number): void {
    checkpointLog(day, "PASSIVE");
  },
  /** Checkpoints and truncates the log, unless another connection reads or writes at that moment. */
  truncate(day: number): void {
    checkpointLog(day, "TRUNCATE");
  },
};

export type CheckpointerApi = typeof api;

serveThread(api);
