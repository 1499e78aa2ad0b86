import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { stripVTControlCharacters, styleText } from "node:util";

// Measurements of a benchmark: display and storage.

export interface Measurement {
  readonly name: string;
  readonly result: string;
  /** Cost of the same work without the service, measured in the same run. */
  readonly baseline?: string;
  readonly ratio?: number;
  readonly target: string;
  readonly met: boolean;
  /** Raw numbers, for comparing runs. */
  readonly values: Record<string, number>;
}

export interface Results {
  readonly events: number;
  readonly machine: string;
  readonly benchmarks: Record<string, { readonly measuredAt: string; readonly measurements: readonly Measurement[] }>;
}

export const DATA_FOLDER = join(import.meta.dirname, ".data");
const RESULTS_FILE = join(DATA_FOLDER, "measurements.json");
const GIB = 2 ** 30;

export function readResults(): Results | undefined {
  try {
    return JSON.parse(readFileSync(RESULTS_FILE, "utf8")) as Results;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Saves results; those of a dataset of another size are replaced, not mixed. */
export function saveMeasurements(events: number, name: string, measurements: readonly Measurement[]): void {
  const before = readResults();
  const machine = `${availableParallelism()} cores, ${Math.round(totalmem() / GIB)} GiB, Node ${process.versions.node}`;
  const kept = before?.events === events ? before.benchmarks : {};
  const results: Results = {
    events,
    machine,
    benchmarks: { ...kept, [name]: { measuredAt: new Date().toISOString(), measurements } },
  };
  mkdirSync(dirname(RESULTS_FILE), { recursive: true });
  writeFileSync(RESULTS_FILE, `${JSON.stringify(results, undefined, 2)}\n`);
}

export const COLUMNS = ["measurement", "result", "baseline in the same run", "ratio", "target", "met"] as const;

export function cellsOf({ name, result, baseline, ratio, target, met }: Measurement): string[] {
  return [name, result, baseline ?? "", ratio === undefined ? "" : ratio.toFixed(2), target, met ? "yes" : "NO"];
}

export function showTable(measurements: readonly Measurement[]): string {
  const rows = [[...COLUMNS] as string[], ...measurements.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row, at) => {
      const line = row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ");
      if (at === 0) return styleText("bold", line);
      return row.at(-1) === "yes" ? line : styleText("red", line);
    })
    .map((line) => (process.stdout.isTTY ? line : stripVTControlCharacters(line)))
    .join("\n");
}

/** CPU time of this thread so far; other load on the machine does not count. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

export const ms = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
export const perSecond = (value: number) => `${Math.round(value).toLocaleString("en")}/s`;
export const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
