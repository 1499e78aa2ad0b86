// The arithmetic of a stacked chart.

export interface Series {
  readonly name: string;
  readonly values: readonly number[];
  /** What is left over after the largest: drawn in grey. */
  readonly isOther?: boolean;
}

export interface Layer {
  readonly name: string;
  readonly isOther: boolean;
  readonly bottom: readonly number[];
  readonly top: readonly number[];
}

/** The series on top of each other, the first at the bottom. */
export function stack(series: readonly Series[], points: number): Layer[] {
  let bottom: readonly number[] = Array.from({ length: points }, () => 0);
  return series.map(({ name, values, isOther = false }) => {
    const below = bottom;
    const top = below.map((base, index) => base + (values[index] ?? 0));
    bottom = top;
    return { name, isOther, bottom: below, top };
  });
}

/** Steps of 1, 2 or 5 times a power of ten that cover the range with about `most` lines. */
export function valueTicks(max: number, most: number): number[] {
  if (max <= 0) return [0];
  const rough = max / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!;
  const ticks: number[] = [];
  for (let tick = 0; tick <= max * 1.0001; tick += step) ticks.push(tick);
  return ticks;
}

/** The index of the last time at or before the moment; 0 if it is before the first. */
export function indexAt(timesMs: readonly number[], atMs: number): number {
  let [low, high] = [0, timesMs.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (timesMs[middle]! <= atMs) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
