import type { Event, Severity } from "../../data/client.ts";

// The shape of a mark says what happened, its colour how bad it is. One description for the picture in SVG and on a canvas.

export type Shape =
  | "bar"
  | "thin"
  | "box"
  | "dark"
  | "ring"
  | "cross"
  | "diamond"
  | "capsule"
  | "triangle"
  | "dot"
  | "tick";
/** A token of the theme. */
export type Ink = `m-${Severity}` | "ink2" | "ink3" | "panel";

export interface Glyph {
  readonly shape: Shape;
  readonly fill?: Ink;
  readonly fillOpacity?: number;
  readonly stroke?: Ink;
  readonly strokeWidth?: number;
  readonly opacity?: number;
}

const SHAPES: readonly (readonly [Shape, RegExp])[] = [
  ["ring", /^(access_granted|door_access|door_opened|door_unlocked|fingerprint_identified|visitor_checked)/],
  ["cross", /^(access_denied|unknown_badge|fingerprint_unknown|call_refused|dhcp_refused)/],
  ["diamond", /^(door_forced|tamper|rogue_|glass_break|burglar_alarm|lockdown$|emergency$|evacuation$|smoke_|carbon_)/],
  ["triangle", /^(ids_|honeypot|anomaly)/],
  ["capsule", /^call_/],
  ["bar", /^(person|face|loitering|door_held)/],
  ["thin", /^(motion|light_motion|sensor_motion|detection|sound|animal)/],
  ["box", /^(vehicle|license_plate|package)/],
  ["dark", /^(camera_offline|device_offline|wan_link_down|recording_stopped)/],
  ["tick", /^(dns_|firewall_|drop|dhcp_|sip_scan|sip_registration|http|tls|fileinfo|client_disconnected)/],
];

export function shapeOf(event: Pick<Event, "type" | "raw">): Shape {
  if (event.type === "client_connected") return event.raw["known"] === false ? "diamond" : "dot";
  return SHAPES.find(([, types]) => types.test(event.type))?.[0] ?? "dot";
}

/** How a mark is painted. `isStrong`: it belongs to the thread or echoes it, so its colour counts even where it is noise. */
export function glyphOf(event: Pick<Event, "type" | "raw" | "severity">, isStrong: boolean): Glyph {
  const shape = shapeOf(event);
  const color: Ink = `m-${event.severity}`;
  const quiet: Ink = event.severity === "info" ? "ink3" : color;
  switch (shape) {
    case "bar":
      return { shape, fill: color, opacity: isStrong || event.severity !== "low" ? 1 : 0.75 };
    case "thin":
      return { shape, fill: isStrong ? color : "ink3", opacity: isStrong ? 1 : 0.42 };
    case "box":
      return { shape, stroke: isStrong ? color : "ink3", strokeWidth: 1.4 };
    case "dark":
      return { shape, fill: quiet, fillOpacity: 0.3, stroke: quiet, strokeWidth: 1 };
    case "ring":
      return { shape, fill: "panel", stroke: isStrong && event.severity !== "info" ? color : "ink2", strokeWidth: 1.6 };
    case "cross":
      return { shape, stroke: color, strokeWidth: 2 };
    case "capsule":
      return { shape, fill: quiet, fillOpacity: 0.22, stroke: quiet, strokeWidth: 1.2 };
    case "tick":
      return { shape, fill: isStrong && event.severity !== "info" ? color : "ink3", opacity: isStrong ? 1 : 0.6 };
    case "triangle":
      return { shape, fill: quiet, opacity: event.severity === "low" && !isStrong ? 0.6 : 0.95 };
    case "diamond":
    case "dot":
      return { shape, fill: quiet };
    default:
      return shape satisfies never;
  }
}

/** Shapes that are as long as what they stand for. */
const LASTING: ReadonlySet<Shape> = new Set(["bar", "thin", "dark", "capsule"]);
const SHORTEST: Partial<Record<Shape, number>> = { bar: 6, thin: 2, dark: 6, capsule: 6 };

/** How far the shape reaches from where the mark begins, in pixels: left, and right. */
export function extentOf(shape: Shape, lengthPx: number, size: number): [left: number, right: number] {
  if (LASTING.has(shape)) return [0, Math.max(SHORTEST[shape]! * size, lengthPx)];
  if (shape === "box") return [0, 9 * size];
  const half = { ring: 5, cross: 5, diamond: 7, triangle: 6, dot: 4, tick: 1 }[shape as "ring"];
  return [half * size, half * size];
}

/** The outline of a mark that begins at (x, y). `size` is 1, or less in a small axis. */
export function outlineOf(shape: Shape, x: number, y: number, lengthPx: number, size: number): string {
  const [, right] = extentOf(shape, lengthPx, size);
  switch (shape) {
    case "bar":
      return rounded(x, y, right, 11 * size, 3);
    case "thin":
      return rounded(x, y, right, 6 * size, 2);
    case "box":
      return rounded(x, y, right, 8 * size, 2);
    case "dark":
      return rounded(x, y, right, 12 * size, 2);
    case "capsule":
      return rounded(x, y, right, 10 * size, 5 * size);
    case "ring":
    case "dot":
      return circle(x, y, 4 * size);
    case "cross":
      return `${start(x - 4 * size, y - 4 * size)}l${8 * size} ${8 * size}m0 ${-8 * size}l${-8 * size} ${8 * size}`;
    case "diamond":
      return `${start(x, y - 7 * size)}l${7 * size} ${7 * size}l${-7 * size} ${7 * size}l${-7 * size} ${-7 * size}z`;
    case "triangle":
      return `${start(x, y - 6.5 * size)}l${6 * size} ${11 * size}h${-12 * size}z`;
    case "tick":
      return `${start(x - 0.8, y - 5 * size)}h1.6v${10 * size}h-1.6z`;
    default:
      return shape satisfies never;
  }
}

const tenth = (value: number) => Math.round(value * 10) / 10;
const start = (x: number, y: number) => `M${tenth(x)} ${tenth(y)}`;

const circle = (x: number, y: number, radius: number) =>
  `${start(x - radius, y)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0z`;

function rounded(x: number, y: number, width: number, height: number, radius: number): string {
  const r = tenth(Math.min(radius, width / 2, height / 2));
  const w = tenth(width - 2 * r);
  const h = tenth(height - 2 * r);
  const corner = (toX: number, toY: number) => `a${r} ${r} 0 0 1 ${toX} ${toY}`;
  return `${start(x + r, y - height / 2)}h${w}${corner(r, r)}v${h}${corner(-r, r)}h${-w}${corner(-r, -r)}v${-h}${corner(r, -r)}z`;
}
