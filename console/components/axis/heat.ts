import { domainOf, type Domain } from "../../text/domains.ts";
import { laneId, laneOfType, OTHER } from "./lanes.ts";

// Too many events to draw one by one: how many there are in each step, lane by lane.

export interface HeatCell {
  readonly atMs: number;
  readonly count: number;
}

export interface Heat {
  readonly stepMs: number;
  readonly lanes: ReadonlyMap<string, readonly HeatCell[]>;
}

export interface CountsByTime {
  readonly key: string;
  readonly cells: readonly HeatCell[];
}

export interface HeatAnswer {
  readonly stepMs: number;
  readonly doors: readonly CountsByTime[];
  readonly cameras: readonly CountsByTime[];
  /** With the source that most events of the type have. */
  readonly types: readonly (CountsByTime & { readonly source: string })[];
}

const STEPS_MS = [
  10_000,
  60_000,
  300_000,
  900_000,
  1_800_000,
  3_600_000,
  7_200_000,
  10_800_000,
  21_600_000,
  43_200_000,
  86_400_000,
  7 * 86_400_000,
];
const CELLS_MAX = 200;

/** The length of a cell, such that a lane has at most `CELLS_MAX`. */
export const heatStepMs = (lengthMs: number) =>
  STEPS_MS.find((stepMs) => lengthMs / stepMs <= CELLS_MAX) ?? STEPS_MS.at(-1)!;

/** As the API writes a duration. */
export function intervalText(stepMs: number): string {
  if (stepMs % 86_400_000 === 0) return `${stepMs / 86_400_000}d`;
  if (stepMs % 3_600_000 === 0) return `${stepMs / 3_600_000}h`;
  if (stepMs % 60_000 === 0) return `${stepMs / 60_000}m`;
  return `${stepMs / 1000}s`;
}

type Sums = Map<number, number>;

function add(lanes: Map<string, Sums>, lane: string, cells: readonly HeatCell[], sign = 1): void {
  const sums = lanes.get(lane) ?? new Map<number, number>();
  for (const { atMs, count } of cells) sums.set(atMs, (sums.get(atMs) ?? 0) + sign * count);
  lanes.set(lane, sums);
}

/** Places by their own counts; what happened at none of them is the rest of its domain. */
export function heatOf({ stepMs, doors, cameras, types }: HeatAnswer): Heat {
  const lanes = new Map<string, Sums>();
  const places: readonly [Domain, readonly CountsByTime[]][] = [
    ["access", doors],
    ["protect", cameras],
  ];
  for (const [domain, all] of places) {
    for (const { key, cells } of all) {
      add(lanes, laneId(domain, key), cells);
      add(lanes, laneId(domain, OTHER), cells, -1);
    }
  }
  for (const { key, source, cells } of types) {
    const domain = domainOf(source);
    add(lanes, domain === "access" || domain === "protect" ? laneId(domain, OTHER) : laneOfType(domain, key), cells);
  }
  const heat = new Map<string, HeatCell[]>();
  for (const [lane, sums] of lanes) {
    const cells = [...sums].filter(([, count]) => count > 0).map(([atMs, count]) => ({ atMs, count }));
    if (cells.length > 0)
      heat.set(
        lane,
        cells.toSorted((a, b) => a.atMs - b.atMs),
      );
  }
  return { stepMs, lanes: heat };
}

/** Events per lane within the view, for its lanes. */
export function heatCounts({ lanes, stepMs }: Heat, fromMs: number, toMs: number): ReadonlyMap<string, number> {
  return new Map(
    [...lanes].map(([lane, cells]) => [
      lane,
      cells.reduce((sum, { atMs, count }) => (atMs + stepMs > fromMs && atMs < toMs ? sum + count : sum), 0),
    ]),
  );
}
