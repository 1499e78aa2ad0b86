import { execFileSync } from "node:child_process";
import { RecordBatch } from "../collectors/records.ts";
import { WindowJournal } from "./journal.ts";
import { FlowTable } from "./table.ts";

// Writes a journal while files may not grow, and again once they may. For a process of its own, whose shell ignores XFSZ, so
// that such a write ends early instead of the process.

const MINUTE = 29_000_000;

export interface FullDiskOutcome {
  /** Of each writing, in order. */
  readonly outcomes: readonly ("written" | "refused")[];
  /** Rows of the older and the younger table that were written in the end. */
  readonly rows: readonly number[];
}

export async function writeOnFullDisk(folder: string): Promise<FullDiskOutcome> {
  const journal = new WindowJournal(folder);
  const outcomes: ("written" | "refused")[] = [];
  const write = async (table: FlowTable) => {
    const writing = journal.write(table, false);
    // What comes meanwhile is not in it, and comes after it.
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

function newTable(id: string): FlowTable {
  const table = new FlowTable(id, MINUTE);
  table.exporters.set(0, new Uint8Array(16).fill(1));
  return table;
}

function add(table: FlowTable, count: number): void {
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
