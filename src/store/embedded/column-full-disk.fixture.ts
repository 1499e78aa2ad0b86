import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { Registry } from "prom-client";
import { DAY_MS } from "../../lib/time.ts";
import type { Store } from "../ports/store.ts";
import { openStore } from "../open-store.ts";
import { columnsFile } from "../files/layout.ts";

// Fills the columns while a limit keeps their file from growing, and again without the limit. The journal's files stay below
// it. Runs in a process of its own whose shell ignores XFSZ, so that a refused write fails instead of ending the process.

const AT_MS = Date.parse("2026-11-10T12:00:00Z");
const MEMTABLE_ROWS = 20;
/** Three to five flushed memtables; the checkpoint is due after eight. */
const LOG_BYTES_MIN = 600_000;
const LOG_BYTES_MAX = 1_100_000;
const RECOVERY_MS_MAX = 100_000;

interface StoreState {
  readonly appended: number;
  /** The number of rows in the columns, or the name of the error. */
  readonly rows: number | string;
  readonly isHealthy: boolean;
}

export interface FullDiskOutcome {
  readonly before: StoreState;
  /** One state per memtable that could not be flushed, until the columns refuse queries, and one more after that. */
  readonly onFullDisk: readonly StoreState[];
  readonly after: StoreState;
  readonly reopened: StoreState;
}

export async function fillOnFullDisk(dataDir: string): Promise<FullDiskOutcome> {
  const options = { dataDir, platform: "platform", indexPrefix: "tocsin", log: pino({ level: "silent" }) };
  const open = () => openStore({ ...options, registry: new Registry(), tailRowsMax: MEMTABLE_ROWS });
  let store = await open();
  let appended = 0;
  const fillMemtable = async (timestampMs: number, text: string) => {
    const raws = Array.from({ length: MEMTABLE_ROWS }, () => ({ n: appended++, text }));
    await store.events.append(raws.map((raw) => ({ draft: { ...EVENT, timestampMs, raw } })));
  };
  const state = async (): Promise<StoreState> => ({
    appended,
    rows: await countRows(store),
    isHealthy: await isHealthy(store),
  });

  for (let i = 0; i < 10; i++) await fillMemtable(AT_MS, "x".repeat(10_000));
  // The journal of the other day needs space below the limit, and a checkpoint, which removes the log, must not be due.
  const logBytes = () => statSync(`${columnsFile(dataDir)}.wal`, { throwIfNoEntry: false })?.size ?? 0;
  let before = await state();
  while (logBytes() < LOG_BYTES_MIN || logBytes() > LOG_BYTES_MAX) {
    await fillMemtable(AT_MS, "x".repeat(10_000));
    before = await state();
  }
  limitFiles(logBytes());
  const onFullDisk: StoreState[] = [];
  do {
    // Another day, whose journal file is far below the limit.
    await fillMemtable(AT_MS + DAY_MS, "y");
    onFullDisk.push(await state());
  } while (typeof onFullDisk.at(-2)?.rows !== "string");
  limitFiles("unlimited");
  await countRows(store);
  for (const until = Date.now() + RECOVERY_MS_MAX; !(await isHealthy(store)) && Date.now() < until;) await sleep(50);
  const after = await state();
  await store.close();
  store = await open();
  const reopened = await state();
  await store.close();
  return { before, onFullDisk, after, reopened };
}

const EVENT = { type: "filler", source: "custom", severity: "info", class: "security", enrichment: {} } as const;

function countRows(store: Store): Promise<number | string> {
  return store.events.search({ condition: { kind: "all", of: [] }, sort: [], limit: 0, aggs: [] }).then(
    ({ total }) => total,
    (error: Error) => error.name,
  );
}

function isHealthy(store: Store): Promise<boolean> {
  return store.check().then(
    () => true,
    () => false,
  );
}

function limitFiles(bytes: number | "unlimited"): void {
  execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${bytes}:unlimited`]);
}
