import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { formatDay, parseTime } from "../../lib/time.ts";

// The files and folders of the data folder.

export interface Layout {
  readonly dataDir: string;
  readonly indexPrefix: string;
}

export const lockFile = (dataDir: string) => join(dataDir, "lock.db");
export const keysFile = (dataDir: string) => join(dataDir, "keys.db");
export const stateFile = (dataDir: string) => join(dataDir, "state.db");
/** Exists only during a probe for free space. */
export const roomFile = (dataDir: string) => join(dataDir, "room.probe");
export const casesFile = (dataDir: string) => join(dataDir, "cases.db");
export const eventsFolder = (dataDir: string) => join(dataDir, "events");
export const columnsFile = (dataDir: string) => join(dataDir, "columns", "columns.duckdb");
export const columnsScratch = (dataDir: string) => join(dataDir, "columns", "scratch");
/** Lies with the columns, whose scratch folder is cleared at every start. */
export const parquetScratch = (dataDir: string) => join(columnsScratch(dataDir), "parquet");
export const exportsFolder = (dataDir: string) => join(dataDir, "exports");

export const flowsFolder = (dataDir: string) => join(dataDir, "flows");
export const flowsScratch = (dataDir: string) => join(dataDir, "flows", "scratch");

/** The name of the unit that a day's flows are kept in. */
function flowUnitName({ indexPrefix }: Layout, day: number): string {
  return `${indexPrefix}-flows-${formatDay(day)}`;
}

export function flowUnitFile(layout: Layout, day: number): string {
  return join(flowsFolder(layout.dataDir), `${flowUnitName(layout, day)}.duckdb`);
}

export function dayFile({ dataDir, indexPrefix }: Layout, day: number): string {
  return join(eventsFolder(dataDir), `${indexPrefix}-events-${formatDay(day)}.db`);
}

/** The days of events that have a file, oldest first. */
export function listDays({ dataDir, indexPrefix }: Layout): number[] {
  return daysOfFiles(eventsFolder(dataDir), `${indexPrefix}-events-`, ".db");
}

/** The days of flows that have a file, oldest first. */
export function listFlowDays({ dataDir, indexPrefix }: Layout): number[] {
  return daysOfFiles(flowsFolder(dataDir), `${indexPrefix}-flows-`, ".duckdb");
}

/** By its name: the file of a day of events, under whichever prefix. */
export function isDayFile(name: string): boolean {
  return /-events-\d{4}\.\d\d\.\d\d\.db$/.test(name);
}

/** By its name: the file of a day of flows, under whichever prefix. */
export function isFlowUnitFile(name: string): boolean {
  return /-flows-\d{4}\.\d\d\.\d\d\.duckdb$/.test(name);
}

/** Whether the folder has a file of events, under whichever prefix. */
function hasEvents(dataDir: string): boolean {
  const folder = eventsFolder(dataDir);
  return existsSync(folder) && readdirSync(folder).some(isDayFile);
}

/** An empty file is what a full disk, or a wrong hand, leaves of one. */
export function isMissing(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Whatever put events into the folder has made the file of the keys as well. */
export function areKeysLost(dataDir: string): boolean {
  return isMissing(keysFile(dataDir)) && hasEvents(dataDir);
}

/** Prefixes other than this one that files of the folder begin with: these are kept, and nobody sees what is in them. */
export function otherPrefixes({ dataDir, indexPrefix }: Layout): string[] {
  const found = new Set<string>();
  for (const folder of [eventsFolder(dataDir), flowsFolder(dataDir)].filter((path) => existsSync(path))) {
    for (const name of readdirSync(folder)) {
      const prefix = /^(.+)-(?:events|flows)-\d{4}\.\d\d\.\d\d\.(?:db|duckdb)$/.exec(name)?.[1];
      if (prefix !== undefined && prefix !== indexPrefix) found.add(prefix);
    }
  }
  return [...found];
}

function daysOfFiles(folder: string, beginning: string, end: string): number[] {
  const days: number[] = [];
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(beginning) || !name.endsWith(end)) continue;
    const match = /^(\d{4})\.(\d\d)\.(\d\d)$/.exec(name.slice(beginning.length, -end.length));
    const day = match && parseTime(`${match[1]}-${match[2]}-${match[3]}`);
    if (typeof day === "number") days.push(day);
  }
  return days.sort((a, b) => a - b);
}
