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
export const probeFile = (dataDir: string) => join(dataDir, "room.probe");
export const casesFile = (dataDir: string) => join(dataDir, "cases.db");
export const eventsFolder = (dataDir: string) => join(dataDir, "events");
export const columnsFile = (dataDir: string) => join(dataDir, "columns", "columns.duckdb");
export const columnsScratch = (dataDir: string) => join(dataDir, "columns", "scratch");
/** Inside the columns' scratch folder, which is cleared at every start. */
export const parquetScratch = (dataDir: string) => join(columnsScratch(dataDir), "parquet");
export const exportsFolder = (dataDir: string) => join(dataDir, "exports");

export const flowsFolder = (dataDir: string) => join(dataDir, "flows");
export const flowsScratch = (dataDir: string) => join(dataDir, "flows", "scratch");

/** The name of the unit that holds a day's flows. */
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

/** True for the name of a day's event file, under any prefix. */
export function isDayFile(name: string): boolean {
  return /-events-\d{4}\.\d\d\.\d\d\.db$/.test(name);
}

/** True for the name of a day's flow file, under any prefix. */
export function isFlowUnitFile(name: string): boolean {
  return /-flows-\d{4}\.\d\d\.\d\d\.duckdb$/.test(name);
}

/** True if the folder has an event file, under any prefix. */
function hasEvents(dataDir: string): boolean {
  const folder = eventsFolder(dataDir);
  return existsSync(folder) && readdirSync(folder).some(isDayFile);
}

/** An empty file counts as missing: a full disk or a mistaken command leaves one. */
export function isMissing(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** A folder with events has had a key file, so a missing one was lost. */
export function areKeysLost(dataDir: string): boolean {
  return isMissing(keysFile(dataDir)) && hasEvents(dataDir);
}

/** Other prefixes that files of the folder begin with. Such files are kept, but their content is not visible. */
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

function daysOfFiles(folder: string, start: string, end: string): number[] {
  const days: number[] = [];
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(start) || !name.endsWith(end)) continue;
    const match = /^(\d{4})\.(\d\d)\.(\d\d)$/.exec(name.slice(start.length, -end.length));
    const day = match && parseTime(`${match[1]}-${match[2]}-${match[3]}`);
    if (typeof day === "number") days.push(day);
  }
  return days.sort((a, b) => a - b);
}
