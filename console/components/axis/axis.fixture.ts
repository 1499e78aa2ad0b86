import * as fc from "fast-check";
import type { Event } from "../../data/client.ts";
import { SEVERITIES } from "../../data/severity.ts";

// Random events and alerts for tests of the axis.

export const START_MS = Date.UTC(2026, 10, 14, 18, 40);
export const HOUR_MS = 3_600_000;

let lastId = 0;

export function event(
  type: string,
  atMs: number,
  raw: Record<string, unknown> = {},
  source = "platform_network",
): Event {
  return {
    id: `evt_${++lastId}`,
    type,
    source,
    class: "security",
    severity: "info",
    timestamp: new Date(atMs).toISOString(),
    raw,
    enrichment: {},
  } as Event;
}

const KINDS: readonly (readonly [source: string, types: readonly string[], field: string])[] = [
  ["platform_access", ["access_granted", "access_denied", "door_held", "door_forced", "constructor"], "door"],
  ["platform_protect", ["motion", "person", "camera_offline", "camera_online", "vehicle"], "camera"],
  ["platform_talk", ["call_started", "call_ended", "sip_scan", "voicemail"], "call"],
  ["platform_network", ["dns_query", "client_connected", "login_failure", "ids_alert", "wan_link_down", "x"], "device"],
  ["custom", ["backup_failed", "toString"], "host"],
];

export const anEvent = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    type: fc.nat(5),
    place: fc.option(fc.constantFrom("Loading dock", "Main entrance", "Reception", "", "7")),
    afterMs: fc.integer({ min: 0, max: HOUR_MS }),
    seconds: fc.option(fc.constantFrom<unknown>(0, 41, -5, "12", "soon", 1e12, null)),
    severity: fc.constantFrom(...SEVERITIES),
    user: fc.constantFrom("ada.morin", "viktor.horvat", "mei"),
  })
  .map(({ kind: [source, types, field], type, place, afterMs, seconds, severity, user }): Event => ({
    ...event(
      types[type % types.length]!,
      START_MS + afterMs,
      { user, ...(place !== null && { [field]: place }), ...(seconds !== null && { duration_s: seconds }) },
      source,
    ),
    severity,
  }));

export const someEvents = fc.array(anEvent, { maxLength: 120 });

export const someAlerts = fc.array(
  fc
    .record({
      id: fc.uuid(),
      title: fc.string({ maxLength: 80 }),
      severity: fc.constantFrom(...SEVERITIES),
      startsMs: fc.integer({ min: -HOUR_MS, max: 2 * HOUR_MS }),
      lastsMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3 * HOUR_MS })),
    })
    .map(({ id, title, severity, startsMs, lastsMs }) => ({
      id,
      title,
      severity,
      first_event_at: new Date(START_MS + startsMs).toISOString(),
      last_event_at: new Date(START_MS + startsMs + lastsMs).toISOString(),
    })),
  { maxLength: 60 },
);

/** As if every letter were six pixels wide. */
export const measure = (text: string) => text.length * 6;
