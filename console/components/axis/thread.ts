import type { AlertDetail, Event } from "../../data/client.ts";

// The events of one alert in their order, joined by a curve through the lanes.

export interface ThreadPoint {
  readonly x: number;
  readonly y: number;
  readonly number: number;
}

export interface ThreadStop {
  readonly x: number;
  readonly y: number;
  readonly numbers: readonly number[];
  /** `2`, or `2–4` for events that would cover each other. */
  readonly text: string;
  /** Half of its width. */
  readonly half: number;
}

/** A longer thread is told by its band alone. */
const THREAD_EVENTS_MAX = 30;
/** The events of an alert, oldest first; none if they are too many to follow. */
export function threadOf(alert: Pick<AlertDetail, "related_events" | "related_events_total">): readonly Event[] {
  return alert.related_events_total > THREAD_EVENTS_MAX ? [] : alert.related_events.toReversed();
}

const APART = 1;
const CHARACTER_HALF_PX = 2.8;

/** The numbers of a thread; those that would cover each other share a stop. */
export function threadStops(points: readonly ThreadPoint[], radius: number): ThreadStop[] {
  const stops: ThreadStop[] = [];
  for (const [, lane] of Map.groupBy(points, ({ y }) => y)) {
    const runs: ThreadPoint[][] = [];
    for (const point of lane.toSorted((a, b) => a.x - b.x)) {
      const run = [point];
      // A stop grows as it takes another one in, and may then touch the one before it.
      while (runs.length > 0 && areClose(stopOf(runs.at(-1)!, radius), stopOf(run, radius)))
        run.unshift(...runs.pop()!);
      runs.push(run);
    }
    stops.push(...runs.map((run) => stopOf(run, radius)));
  }
  return stops;
}

const areClose = (left: ThreadStop, right: ThreadStop) => right.x - right.half < left.x + left.half + APART;

function stopOf(run: readonly ThreadPoint[], radius: number): ThreadStop {
  const x = run.reduce((sum, point) => sum + point.x, 0) / run.length;
  const numbers = run.map(({ number }) => number).toSorted((a, b) => a - b);
  const text = numbersText(numbers);
  return { x, y: run[0]!.y, numbers, text, half: radius + Math.max(0, text.length - 2) * CHARACTER_HALF_PX };
}

/** 1, 2, 3, 5 is `1–3, 5`. */
function numbersText(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let start = 0; start < numbers.length;) {
    let end = start;
    while (numbers[end + 1] === numbers[end]! + 1) end++;
    parts.push(end === start ? `${numbers[start]}` : `${numbers[start]}–${numbers[end]}`);
    start = end + 1;
  }
  return parts.length > 2 ? `${numbers[0]}–${numbers.at(-1)}` : parts.join(", ");
}

/** Rings around marks of one lane; those that would cross each other become one. */
export function ringsOf(marks: readonly { readonly x: number; readonly y: number }[], radius: number) {
  const rings: { readonly y: number; readonly from: number; to: number }[] = [];
  for (const [y, lane] of Map.groupBy(marks, (mark) => mark.y)) {
    let last: (typeof rings)[number] | undefined;
    for (const { x } of lane.toSorted((a, b) => a.x - b.x)) {
      if (last !== undefined && x - radius < last.to) last.to = x + radius;
      else rings.push((last = { y, from: x - radius, to: x + radius }));
    }
  }
  return rings;
}

/** The stops in the order of the events, for the curve. */
export function threadWay(stops: readonly ThreadStop[]): ThreadStop[] {
  const stopOfNumber = stops.flatMap((stop) => stop.numbers.map((number) => ({ number, stop })));
  const inOrder = stopOfNumber.toSorted((a, b) => a.number - b.number).map(({ stop }) => stop);
  return inOrder.filter((stop, index) => stop !== inOrder[index - 1]);
}

/** A curve that leaves and reaches each stop vertically; between stops on one lane it bows above. */
export function threadPath(stops: readonly { readonly x: number; readonly y: number }[]): string {
  if (stops.length < 2) return "";
  const parts = [`M${round(stops[0]!.x)} ${round(stops[0]!.y)}`];
  for (let index = 1; index < stops.length; index++) {
    const from = stops[index - 1]!;
    const to = stops[index]!;
    if (from.y === to.y) {
      const bow = Math.min(18, Math.abs(to.x - from.x) / 3);
      parts.push(`Q${round((from.x + to.x) / 2)} ${round(from.y - bow * 2)} ${round(to.x)} ${round(to.y)}`);
    } else {
      const middle = round((from.y + to.y) / 2);
      parts.push(`C${round(from.x)} ${middle} ${round(to.x)} ${middle} ${round(to.x)} ${round(to.y)}`);
    }
  }
  return parts.join("");
}

const round = (value: number) => Math.round(value * 10) / 10;
