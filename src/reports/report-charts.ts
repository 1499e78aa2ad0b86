import { SEVERITIES, type Severity } from "../model/event.ts";
import { markup, type Markup } from "./markup.ts";
import { byteSize, number, type ZoneClock } from "./report-words.ts";

// Charts as inline SVG. Severities differ by pattern as well as by colour, so that a copy in black and white can be read.

const WIDTH = 720;
const LEFT = 48;
const RIGHT = 6;
const TOP = 8;
const LABELS = 18;
const MARKS_MAX = 8;
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];
const STEPS_MS = [1, 2, 5, 10, 15, 30]
  .map((minutes) => minutes * MINUTE_MS)
  .concat([1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS))
  .concat([1, 2, 5].map((days) => days * DAY_MS));

export interface ChartFrame {
  readonly fromMs: number;
  readonly toMs: number;
  readonly intervalMs: number;
  readonly clock: ZoneClock;
  /** What the chart shows, for those who do not see it. */
  readonly label: string;
}

/** The scale of a chart: from zero to a round number that is not below the highest value. */
class ChartScale {
  readonly top: number;
  readonly #frame: ChartFrame;
  readonly height: number;

  constructor(frame: ChartFrame, height: number, highest: number) {
    this.#frame = frame;
    this.height = height;
    this.top = roundUp(highest);
  }

  x(ms: number): number {
    const { fromMs, toMs } = this.#frame;
    const inside = Math.min(Math.max(ms, fromMs), toMs);
    return LEFT + ((inside - fromMs) / (toMs - fromMs)) * (WIDTH - LEFT - RIGHT);
  }

  y(value: number): number {
    return TOP + (1 - value / this.top) * (this.height - TOP);
  }
}

/** 1, 2, 4, 6, 8 or 10 times a power of ten, at least 2: half of it is a whole number or a round one. */
function roundUp(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 1)));
  return Math.max(
    2,
    [1, 2, 4, 6, 8, 10].map((factor) => factor * power).find((value) => value >= highest)!,
  );
}

const point = (value: number) => String(Math.round(value * 10) / 10);

/** Patterns and the bars of severity marks, once per page. */
export function chartDefinitions(): Markup {
  const bars = (filled: number) =>
    [0, 1, 2, 3].map(
      (nth) =>
        markup`<rect
          class="${nth < filled ? "on" : "off"}"
          x="${nth * 4 + 0.5}"
          y="${6 - nth * 1.5}"
          width="2.5"
          height="${4 + nth * 1.5}"
        />`,
    );
  return markup`<svg class="definitions" aria-hidden="true" focusable="false" width="0" height="0">
    <defs>
      <pattern id="fill-critical" width="4" height="4" patternUnits="userSpaceOnUse">
        <rect class="ink-critical" width="4" height="4" />
      </pattern>
      <pattern id="fill-high" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="ink-high" width="2.6" height="4" />
      </pattern>
      <pattern id="fill-medium" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <rect class="ink-medium" width="1.4" height="4" />
      </pattern>
      <pattern id="fill-low" width="4" height="3" patternUnits="userSpaceOnUse">
        <rect class="ink-low" width="4" height="1.2" />
      </pattern>
      <pattern id="fill-info" width="4" height="4" patternUnits="userSpaceOnUse">
        <circle class="ink-info" cx="2" cy="2" r="0.9" />
      </pattern>
      ${SEVERITIES.map((severity, i) => markup`<symbol id="mark-${severity}" viewBox="0 0 16 11">${bars(SEVERITIES.length - 1 - i)}</symbol>`)}
    </defs>
  </svg>`;
}

/** Bars and word: the severity does not depend on colour. */
export function severityMark(severity: Severity): Markup {
  return markup`<span class="severity text-${severity}"
    ><svg class="mark" aria-hidden="true" width="16" height="11"><use href="#mark-${severity}" /></svg>${severity}</span
  >`;
}

export interface SeverityInterval {
  readonly startMs: number;
  readonly counts: Readonly<Record<Severity, number>>;
}

/** Alerts over time, stacked with the worst on top. */
export function severityChart(frame: ChartFrame, intervals: readonly SeverityInterval[]): Markup {
  const totals = intervals.map(({ counts }) => SEVERITIES.reduce((sum, severity) => sum + counts[severity], 0));
  const scale = new ChartScale(frame, 130, Math.max(0, ...totals));
  const bars = intervals.flatMap(({ startMs, counts }) => {
    const [left, right] = [scale.x(startMs), scale.x(startMs + frame.intervalMs)];
    let below = 0;
    return SEVERITIES.toReversed().flatMap((severity) => {
      const count = counts[severity];
      if (count === 0) return [];
      const [bottom, top] = [scale.y(below), scale.y(below + count)];
      below += count;
      const width = Math.max(1, right - left - 1);
      return markup`<rect
        class="bar line-${severity}"
        fill="url(#fill-${severity})"
        x="${point(left + 0.5)}"
        y="${point(top)}"
        width="${point(width)}"
        height="${point(bottom - top)}"
      />`;
    });
  });
  return chart(frame, scale, number, bars);
}

export interface TrafficInterval {
  readonly startMs: number;
  readonly bytes: number;
  readonly previousBytes: number;
}

/** Bytes over time as an area, those of the period before as a dashed line. */
export function trafficChart(frame: ChartFrame, intervals: readonly TrafficInterval[]): Markup {
  const scale = new ChartScale(
    frame,
    90,
    Math.max(0, ...intervals.map(({ bytes, previousBytes }) => Math.max(bytes, previousBytes))),
  );
  const line = (valueOf: (interval: TrafficInterval) => number) =>
    intervals
      .map((interval) => {
        const y = point(scale.y(valueOf(interval)));
        return `${point(scale.x(interval.startMs))},${y} ${point(scale.x(interval.startMs + frame.intervalMs))},${y}`;
      })
      .join(" ");
  const floor = point(scale.y(0));
  return chart(frame, scale, byteSize, [
    steps(`${point(LEFT)},${floor} ${line(({ bytes }) => bytes)} ${point(WIDTH - RIGHT)},${floor}`, "area"),
    steps(
      line(({ previousBytes }) => previousBytes),
      "before",
    ),
  ]);
}

/** The text of the points is longer than a text on a page may be, so they are inserted one by one. */
function steps(points: string, kind: "area" | "before"): Markup {
  const path = points.split(" ").map((each, i) => markup`${i === 0 ? "M" : "L"}${each}`);
  return markup`<path class="${kind}" d="${path}" />`;
}

function chart(
  frame: ChartFrame,
  scale: ChartScale,
  format: (value: number) => string,
  content: readonly Markup[],
): Markup {
  const { clock, fromMs, toMs } = frame;
  const { height } = scale;
  const lines = [0, scale.top / 2, scale.top].map((value) => {
    const y = point(scale.y(value));
    return markup`<line
        class="${value === 0 ? "axis" : "grid"}"
        x1="${LEFT}"
        x2="${WIDTH - RIGHT}"
        y1="${y}"
        y2="${y}"
      /><text class="label" x="${LEFT - 6}" y="${y}" dy="3.5" text-anchor="end">${format(value)}</text>`;
  });
  const stepMs = STEPS_MS.find((step) => (toMs - fromMs) / step <= MARKS_MAX) ?? STEPS_MS.at(-1)!;
  const times = clock.marks(fromMs, toMs, stepMs).map((ms) => {
    const x = point(scale.x(ms));
    const text = stepMs >= DAY_MS ? clock.day(ms) : clock.isMidnight(ms) ? clock.weekday(ms) : clock.time(ms);
    return markup`<line class="axis" x1="${x}" x2="${x}" y1="${height}" y2="${height + 4}" /><text
        class="label"
        x="${x}"
        y="${height + 15}"
        text-anchor="middle"
        >${text}</text
      >`;
  });
  return markup`<svg class="chart" role="img" aria-label="${frame.label}" viewBox="0 0 ${WIDTH} ${height + LABELS}">
    ${lines}${content}${times}
  </svg>`;
}
