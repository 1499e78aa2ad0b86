import { useSyncExternalStore } from "react";
import { getPreferences, usePreferences } from "../../data/preferences.ts";

// The zone in which times are shown: the browser's unless the reader chose the site's or UTC.

const HOUR_MS = 3_600_000;
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
let siteZone: string | undefined;
const listeners = new Set<() => void>();

/** Told by the service after signing in. */
export function setSiteZone(zone: string): void {
  if (zone === siteZone) return;
  siteZone = zone;
  for (const listener of listeners) listener();
}

export function zoneOf(choice: "browser" | "site" | "UTC"): string {
  switch (choice) {
    case "UTC":
      return "UTC";
    case "site":
      return siteZone ?? browserZone;
    default:
      return browserZone;
  }
}

export function currentZone(): string {
  return zoneOf(getPreferences().zone);
}

/** Renders again when the reader chooses another zone, or the service tells that of the site. */
export function useZone(): string {
  const { zone } = usePreferences();
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => zoneOf(zone),
  );
}

/** `Europe/Berlin` is "Berlin time". */
export function zoneName(zone: string): string {
  return zone === "UTC" ? "UTC" : `${zone.split("/").at(-1)!.replaceAll("_", " ")} time`;
}

const offsets = new Map<string, number>();
const OFFSETS_MAX = 10_000;
const partFormats = new Map<string, Intl.DateTimeFormat>();

function partFormat(zone: string): Intl.DateTimeFormat {
  let format = partFormats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    partFormats.set(zone, format);
  }
  return format;
}

/** How far the zone's clocks are ahead of UTC at that moment. Zones change on the quarter hour at the finest. */
export function zoneOffsetMs(atMs: number, zone: string): number {
  const quarterMs = Math.floor(atMs / (HOUR_MS / 4)) * (HOUR_MS / 4);
  const key = `${zone} ${quarterMs}`;
  let offset = offsets.get(key);
  if (offset === undefined) {
    const parts: Record<string, number> = {};
    for (const { type, value } of partFormat(zone).formatToParts(quarterMs)) parts[type] = Number(value);
    offset =
      Date.UTC(parts["year"]!, parts["month"]! - 1, parts["day"]!, parts["hour"]!, parts["minute"]!, parts["second"]!) -
      quarterMs;
    if (offsets.size >= OFFSETS_MAX) offsets.clear();
    offsets.set(key, offset);
  }
  return offset;
}

/** The moment at which the zone's clocks show this; the first one where they show it twice. */
export function fromWallClock(wallMs: number, zone: string): number {
  const guess = wallMs - zoneOffsetMs(wallMs, zone);
  const again = wallMs - zoneOffsetMs(guess, zone);
  return Math.min(guess, again) + zoneOffsetMs(Math.min(guess, again), zone) === wallMs
    ? Math.min(guess, again)
    : again;
}

export function startOfDayMs(atMs: number, zone: string): number {
  const wall = atMs + zoneOffsetMs(atMs, zone);
  return fromWallClock(Math.floor(wall / (24 * HOUR_MS)) * 24 * HOUR_MS, zone);
}

/** ISO 8601 with the zone's offset: what to copy into a message. */
export function isoWithOffset(atMs: number, zone: string): string {
  const offset = zoneOffsetMs(atMs, zone);
  const sign = offset < 0 ? "-" : "+";
  const minutes = Math.abs(offset) / 60_000;
  const pad = (value: number) => String(value).padStart(2, "0");
  const wall = new Date(atMs + offset).toISOString().slice(0, -1);
  return `${wall}${sign}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}
