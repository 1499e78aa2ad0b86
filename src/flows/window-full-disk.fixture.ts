import { execFileSync } from "node:child_process";
import { RecordBatch } from "../collectors/flows/flow-records.ts";
import { WindowJournal } from "./window-journal.ts";
import { WindowTable } from "./window-table.ts";

// Writes a journal while the file size is limited, and again without the limit. It runs in a separate process whose shell ignores
// SIGXFSZ, so that a write fails instead of ending the process.

const MINUTE = 29_000_000;

export interface FullDiskOutcome {
  /** The outcome of each write, in order. */
  readonly outcomes: readonly ("written" | "refused")[];
  /** Rows of the older and the younger table that were finally written. */
  readonly rows: readonly number[];
}

export async function writeOnFullDisk(folder: string): Promise<FullDiskOutcome> {
  const journal = new WindowJournal(folder);
  const outcomes: ("written" | "refused")[] = [];
  const write = async (table: WindowTable) => {
    const writing = journal.write(table, false);
    // Rows that are added during the write go into the next one.
    add(table, 10);
    outcomes.push(
      await writing.then(
        () => "written",
        () => "refused",
      ),
    );
  };
  const older = newTable("older");
  add(older, 100);
  await write(older);
  limitFiles(12_000);
  add(older, 100);
  await write(older);
  limitFiles(5);
  const younger = newTable("younger");
  add(younger, 100);
  await write(younger);
  limitFiles("unlimited");
  for (const table of [older, younger]) {
    await write(table);
    await write(table);
  }
  await journal.close();
  return { outcomes, rows: [older.count - 10, younger.count - 10] };
}

function limitFiles(bytes: number | "unlimited"): void {
  execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${bytes}:unlimited`]);
}

function newTable(id: string): WindowTable {
  const table = new WindowTable(id, MINUTE);
  table.exporters.set(0, new Uint8Array(16).fill(1));
  return table;
}

function add(table: WindowTable, count: number): void {
  const batch = new RecordBatch(() => undefined);
  const before = table.count;
  for (let i = 0; i < count; i++) {
    const row = batch.next();
    batch.ports[row] = before + i;
    batch.bytes[row * 2] = 100;
    batch.firstSeen[row] = batch.lastSeen[row] = MINUTE * 60_000 + 5;
    table.add(batch, row, MINUTE, 1_000_000);
  }
}
