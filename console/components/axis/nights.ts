import type { View } from "./view.ts";

const HOUR_MS = 3_600_000;
const NIGHT_STARTS_AT = 20;
const NIGHT_ENDS_AT = 6;
/** In a longer view the stripes would only flicker. */
const SHOWN_MS_MAX = 16 * 24 * HOUR_MS;

/** The nights of a view by the clocks of a zone. */
export function nightsOf(view: View, offsetMs: (atMs: number) => number): View[] {
  if (view.toMs - view.fromMs > SHOWN_MS_MAX) return [];
  const nights: View[] = [];
  let startMs: number | undefined;
  const lastMs = Math.ceil(view.toMs / HOUR_MS) * HOUR_MS;
  for (let atMs = Math.floor(view.fromMs / HOUR_MS) * HOUR_MS; atMs <= lastMs; atMs += HOUR_MS) {
    const hour = ((((atMs + offsetMs(atMs)) / HOUR_MS) % 24) + 24) % 24;
    const isNight = hour >= NIGHT_STARTS_AT || hour < NIGHT_ENDS_AT;
    if (isNight) startMs ??= atMs;
    else if (startMs !== undefined) {
      nights.push({ fromMs: startMs, toMs: atMs });
      startMs = undefined;
    }
  }
  if (startMs !== undefined) nights.push({ fromMs: startMs, toMs: lastMs });
  return nights;
}
