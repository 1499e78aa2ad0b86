// Traffic as a stepped line: the sums that the service has for each interval.

export interface Traffic {
  readonly stepMs: number;
  readonly points: readonly { readonly atMs: number; readonly bytes: number }[];
}

const STRIP = 6;

export interface TrafficShape {
  readonly line: string;
  readonly area: string;
}

export function trafficShape(
  { points, stepMs }: Traffic,
  x: (atMs: number) => number,
  top: number,
  height: number,
): TrafficShape {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined) return { line: "", area: "" };
  const most = Math.max(1, ...points.map(({ bytes }) => bytes));
  const bottom = top + height;
  const y = (bytes: number) => (bottom - (bytes / most) * (height - STRIP)).toFixed(1);
  const steps = points.map(({ atMs, bytes }) => `${x(atMs).toFixed(1)} ${y(bytes)}H${x(atMs + stepMs).toFixed(1)}`);
  const line = `M${steps.join("L")}`;
  return { line, area: `${line}V${bottom}H${x(first.atMs).toFixed(1)}Z` };
}

/** Bytes per second of the busiest interval in view. */
export function peakOf({ points, stepMs }: Traffic, fromMs: number, toMs: number): number {
  const seen = points.filter(({ atMs }) => atMs + stepMs > fromMs && atMs < toMs);
  return Math.max(0, ...seen.map(({ bytes }) => bytes)) / (stepMs / 1000);
}
