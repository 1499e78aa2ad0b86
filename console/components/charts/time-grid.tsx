import { timeTicks } from "../time/format.ts";

/** Enough for every other day of a week on a phone. */
const TICKS_MIN = 3.5;
/** The width of a label and some air. */
const LABEL_PIXELS = 62;

interface TimeGridProps {
  readonly fromMs: number;
  readonly toMs: number;
  readonly x: (atMs: number) => number;
  readonly top: number;
  readonly bottom: number;
  /** Where the labels stand. */
  readonly baseline: number;
  readonly ticks: number;
  /** A label that would reach beyond it is left out. */
  readonly right: number;
}

/** Lines of a chart at round times, with their labels. */
export function TimeGrid({ fromMs, toMs, x, top, bottom, baseline, ticks, right }: TimeGridProps) {
  return timeTicks(fromMs, toMs, Math.max(TICKS_MIN, ticks)).map(({ atMs, label, isMidnight }) => (
    <g key={atMs}>
      <line x1={x(atMs)} x2={x(atMs)} y1={top} y2={bottom} stroke="var(--line)" />
      {x(atMs) + LABEL_PIXELS < right && (
        <text x={x(atMs) + 4} y={baseline} fontSize={10.5} fontWeight={isMidnight ? 550 : 400} fill="var(--ink3)">
          {label}
        </text>
      )}
    </g>
  ));
}
