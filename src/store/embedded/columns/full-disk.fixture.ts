import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { Registry } from "prom-client";
import { DAY_MS } from "../../../lib/time.ts";
import type { Store } from "../../store.ts";
import { openEmbedded } from "../embedded.ts";
import { columnsFile } from "../layout.ts";

// Fills the columns while their file may not grow, and again once it may; the files of the journal are smaller, and grow. For
// a process of its own, whose shell ignores XFSZ, so that such a write fails instead of ending the process.

const AT_MS = Date.parse("2026-11-10T12:00:00Z");
const TAIL_ROWS = 20;
const PATIENCE_MS = 100_000;

interface Look {
  readonly appended: number;
  /** As many as the columns count; or what they say instead. */
  readonly found: number | string;
  readonly isWell: boolean;
}

export interface FullDiskOutcome {
  readonly before: Look;
  /** After each tail that found no room, until the columns refuse to answer, and once more after that. */
  readonly meanwhile: readonly Look[];
  readonly after: Look;
  readonly reopened: Look;
}

export async function fillOnFullDisk(dataDir: string): Promise<FullDiskOutcome> {
  const options = { dataDir, platform: "platform", indexPrefix: "tocsin", log: pino({ level: "silent" }) };
  const open = () => openEmbedded({ ...options, registry: new Registry(), tailRowsMax: TAIL_ROWS });
  let store = await open();
  let appended = 0;
  const fillTail = async (timestampMs: number, text: string) => {
    const rows = Array.from({ length: TAIL_ROWS }, () => ({ n: appended++, text }));
    await store.events.append(rows.map((raw) => ({ draft: { ...EVENT, timestampMs, raw } })));
  };
  const look = async (): Promise<Look> => ({ appended, found: await countOf(store), isWell: await isWell(store) });

  for (let i = 0; i < 10; i++) await fillTail(AT_MS, "x".repeat(10_000));
  // A checkpoint may just have removed the log.
  const logBytes = () => statSync(`${columnsFile(dataDir)}.wal`, { throwIfNoEntry: false })?.size ?? 0;
  while (logBytes() === 0) await fillTail(AT_MS, "x".repeat(10_000));
  const before = await look();
  limitFiles(Math.max(1, logBytes()));
  const meanwhile: Look[] = [];
  do {
    // Of another day, whose file of the journal is far below the limit.
    await fillTail(AT_MS + DAY_MS, "y");
    meanwhile.push(await look());
  } while (typeof meanwhile.at(-2)?.found !== "string");
  limitFiles("unlimited");
  await countOf(store);
  for (const until = Date.now() + PATIENCE_MS; !(await isWell(store)) && Date.now() < until;) await sleep(50);
  const after = await look();
  await store.close();
  store = await open();
  const reopened = await look();
  await store.close();
  return { before, meanwhile, after, reopened };
}

const EVENT = { type: "filler", source: "custom", severity: "info", class: "security", enrichment: {} } as const;

function countOf(store: Store): Promise<number | string> {
  return store.events.search({ condition: { kind: "all", of: [] }, sort: [], limit: 0, aggs: [] }).then(
    ({ total }) => total,
    (error: Error) => error.name,
  );
}

function isWell(store: Store): Promise<boolean> {
  return store.check().then(
    () => true,
    () => false,
  );
}

function limitFiles(bytes: number | "unlimited"): void {
  execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${bytes}:unlimited`]);
}
