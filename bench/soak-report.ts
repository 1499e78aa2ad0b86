import { median, megabytes } from "./figures.ts";

// Evaluates the samples of a soak: memory by component, and growth at the end.

/** Bytes by component at one moment; the verdict uses `own`. */
export interface MemorySample {
  readonly seconds: number;
  /** Resident memory, including mapped files. */
  readonly resident: number;
  /** Without file pages, which the system reclaims when it needs them. */
  readonly own: number;
  /** Heaps and engines, as they report themselves. */
  readonly parts: Readonly<Record<string, number>>;
}

/** Tolerated growth over the last third, as a share of the memory; a leak grows more within the hour. */
const GROWTH_SHARE_MAX = 0.03;
const TABLE_ROWS = 12;
const BARS = "▁▂▃▄▅▆▇█";
const CHART_WIDTH = 60;
const UNACCOUNTED = "unaccounted (malloc, stacks, code)";

export interface Verdict {
  readonly isFlat: boolean;
  readonly text: string;
}

/** The median of the slopes between all pairs (Theil-Sen): peaks such as an export or a collection do not move it. */
export function robustSlope(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes: number[] = [];
  for (const [at, [x, y]] of points.entries()) {
    for (const [laterX, laterY] of points.slice(at + 1)) if (laterX > x) slopes.push((laterY - y) / (laterX - x));
  }
  return slopes.length === 0 ? 0 : median(slopes);
}

/**
 * Engines cache what they have read and hold rows until they are written out, for up to two hours: their growth within an hour
 * is no leak. Each has a limit of its own, which it must keep.
 */
const ENGINE_BYTES_MAX: Readonly<Record<string, number>> = {
  "engine of columns": 384e6,
  "engine of flows": 1024 * 1024 * 1024,
};

export function verdictOf(samples: readonly MemorySample[]): Verdict {
  const last = thirdOf(samples, 2).map(withoutEngines);
  const spanSeconds = last.at(-1)!.seconds - last[0]!.seconds;
  const growthOf = (of: readonly MemorySample[]) =>
    robustSlope(of.map(({ seconds, own }) => [seconds, own])) * spanSeconds;
  const growth = growthOf(floorsOf(last));
  const level = median(last.map(({ own }) => own));
  const peaks = Object.entries(ENGINE_BYTES_MAX).map(([part, max]) => {
    const peak = Math.max(...samples.map(({ parts }) => parts[part] ?? 0));
    return { part, peak, max, isKept: peak <= max };
  });
  const isSteady = growth <= level * GROWTH_SHARE_MAX;
  const isFlat = isSteady && peaks.every(({ isKept }) => isKept);
  const engines = peaks.map(
    ({ part, peak, max, isKept }) =>
      `${part} at most ${megabytes(peak)}, ${isKept ? "within" : "ABOVE"} its limit of ${megabytes(max)}`,
  );
  const text =
    `${isFlat ? "flat" : isSteady ? "NOT BOUNDED" : "STILL GROWING"}: ${signed(growth)} over the last third ` +
    `(${Math.round(spanSeconds / 60)} min) in the minimum of each minute, ${megabytes(level * GROWTH_SHARE_MAX)} allowed; ` +
    `${signed(growthOf(last))} in all samples, median ${megabytes(level)}; excluding the engines: ${engines.join(", ")}`;
  return { isFlat, text };
}

function withoutEngines(sample: MemorySample): MemorySample {
  const engines = Object.keys(ENGINE_BYTES_MAX).reduce((sum, part) => sum + (sample.parts[part] ?? 0), 0);
  return { ...sample, own: sample.own - engines };
}

/** The minimum of each minute, just after a garbage collection. A leak raises it like every other sample. */
function floorsOf(samples: readonly MemorySample[]): readonly MemorySample[] {
  const byMinute = Map.groupBy(samples, ({ seconds }) => Math.floor(seconds / 60));
  return Array.from(byMinute.values(), (minute) => minute.reduce((a, b) => (b.own < a.own ? b : a)));
}

export function reportOf(samples: readonly MemorySample[]): string {
  const step = Math.max(1, Math.ceil(samples.length / TABLE_ROWS));
  const shown = samples.filter((_, at) => at % step === 0 || at === samples.length - 1);
  const minutes = ({ seconds }: MemorySample) => `${(seconds / 60).toFixed(1)} min`;
  const course = shown.map((sample) => [minutes(sample), megabytes(sample.resident), megabytes(sample.own)]);
  return [
    tableOf([["time", "resident", "without file pages"], ...course]),
    chartOf(samples.map(({ own }) => own)),
    tableOf([["median of", "first third", "last third", "change"], ...partsRows(samples)]),
  ].join("\n\n");
}

function partsRows(samples: readonly MemorySample[]): string[][] {
  const names = new Set(samples.flatMap(({ parts }) => Object.keys(parts)));
  const row = (name: string, of: (sample: MemorySample) => number) => {
    const [first, last] = [0, 2].map((nth) => median(thirdOf(samples, nth).map(of)));
    return [name, megabytes(first!), megabytes(last!), signed(last! - first!)];
  };
  const unaccounted = ({ own, parts }: MemorySample) =>
    own - Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);
  return [
    row("resident", ({ resident }) => resident),
    row("without file pages", ({ own }) => own),
    ...[...names].sort().map((name) => row(name, ({ parts }) => parts[name] ?? 0)),
    row(UNACCOUNTED, unaccounted),
  ];
}

function thirdOf(samples: readonly MemorySample[], nth: number): readonly MemorySample[] {
  const at = (share: number) => Math.floor((samples.length * share) / 3);
  return samples.slice(Math.min(at(nth), samples.length - 1), Math.max(at(nth + 1), 1));
}

const signed = (bytes: number) => `${bytes < 0 ? "" : "+"}${megabytes(bytes)}`;

function chartOf(values: readonly number[]): string {
  const width = Math.min(CHART_WIDTH, values.length);
  const columns = Array.from({ length: width }, (_, column) =>
    median(
      values.slice(Math.floor((column * values.length) / width), Math.floor(((column + 1) * values.length) / width)),
    ),
  );
  const [least, most] = [Math.min(...columns), Math.max(...columns)];
  const barOf = (value: number) => BARS[Math.round(((value - least) / (most - least || 1)) * (BARS.length - 1))];
  return `${megabytes(least)} ${columns.map(barOf).join("")} ${megabytes(most)}`;
}

function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))))
    .map((cells) => cells.join("  "))
    .join("\n");
}

const METRIC = /^(\w+)(?:\{(.*)\})? ([\d.eE+]+)$/gm;

/** Heaps and engines from the text of `/metrics`. */
export function partsOf(metrics: string): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const [, name, labels = "", value] of metrics.matchAll(METRIC)) {
    const part = partName(
      name!,
      Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, k, v]) => [k, v])),
    );
    if (part) parts[part] = (parts[part] ?? 0) + Number(value);
  }
  return parts;
}

function partName(metric: string, { thread, kind, engine }: Record<string, string | undefined>): string | undefined {
  if (metric === "nodejs_heap_size_total_bytes") return "heap of the main thread";
  if (metric === "nodejs_external_memory_bytes") return "external";
  if (metric === "tocsin_engine_memory_bytes") return `engine of ${engine}`;
  if (metric !== "tocsin_thread_heap_bytes") return undefined;
  if (kind === "external") return "external";
  return kind === "total" ? `heap of ${thread}` : undefined;
}
