import { expect, test } from "vitest";
import type { Alert, Event, Severity } from "../../data/client.ts";
import { daysOf, neighbourAlert, storyOf } from "./story.ts";

const START_MS = Date.UTC(2026, 10, 14, 18);
const DAY_MS = 86_400_000;
const view = { fromMs: START_MS, toMs: START_MS + 3_600_000 };
const at = (seconds: number) => new Date(START_MS + seconds * 1000).toISOString();

const event = (id: string, seconds: number, type: string, severity: Severity = "info") =>
  ({ id, type, source: "platform_network", severity, timestamp: at(seconds), raw: {} }) as unknown as Event;
const alert = (id: string, seconds: number, severity: Severity) =>
  ({ id, severity, title: id, first_event_at: at(seconds - 5), last_event_at: at(seconds) }) as Alert;

const startOfDayMs = (atMs: number) => Math.floor(atMs / DAY_MS) * DAY_MS;
const nothing = {
  events: [],
  alerts: [],
  told: new Set<string>(),
  chosen: undefined,
  view,
  show: "worth" as const,
  startOfDayMs,
};

test("what is worth reading is told in order, alerts after the event that raised them, with the time between", () => {
  const rows = storyOf({
    ...nothing,
    events: [event("b", 400, "admin_login"), event("a", 10, "door_forced"), event("dns", 20, "dns_query")],
    alerts: [alert("mild", 30, "low"), alert("bad", 10, "high")],
  });
  expect(rows.map(({ kind, id }) => `${kind} ${id}`)).toEqual(["event a", "alert bad", "gap before b", "event b"]);
});

test("where the view has several days, each begins with its name instead of the time between", () => {
  const events = [event("a", 0, "door_forced"), event("b", 10, "door_forced"), event("c", 86_400, "door_forced")];
  const rows = storyOf({ ...nothing, events, view: { fromMs: START_MS, toMs: START_MS + 2 * DAY_MS } });
  expect(rows.map(({ kind }) => kind)).toEqual(["day", "event", "event", "day", "event"]);
});

test("everything is everything in view", () => {
  const rows = storyOf({
    ...nothing,
    show: "everything",
    events: [event("dns", 20, "dns_query"), event("later", 4000, "door_forced")],
    alerts: [alert("mild", 30, "low")],
  });
  expect(rows.map(({ id }) => id)).toEqual(["dns", "mild"]);
});

test("the thread, what echoes it and the chosen alert are told even if they are noise", () => {
  const rows = storyOf({
    ...nothing,
    events: [event("dns", 20, "dns_query")],
    alerts: [alert("mild", 30, "low")],
    told: new Set(["dns"]),
    chosen: "mild",
  });
  expect(rows.map(({ id }) => id)).toEqual(["dns", "mild"]);
});

test("a long time is told by days, with their counts and their worst alerts", () => {
  const alerts = [alert("low", 10, "low"), alert("worst", 20, "critical"), alert("next", 86_400, "high")];
  const long = { fromMs: START_MS - DAY_MS, toMs: START_MS + 2 * DAY_MS };
  const rows = daysOf(alerts, long, "worth", startOfDayMs);
  expect(rows.map((row) => (row.kind === "day" ? row.counts : row.id))).toEqual([
    [
      { severity: "critical", count: 1 },
      { severity: "low", count: 1 },
    ],
    "worst",
    [{ severity: "high", count: 1 }],
  ]);
  expect(daysOf(alerts, long, "everything", startOfDayMs).length).toBe(5);
});

test("the next alert is the one after the chosen one, or after the middle of the view", () => {
  const alerts = [alert("c", 300, "high"), alert("a", 100, "high"), alert("b", 200, "high")];
  const middleMs = START_MS + 150_000;
  const ids = (chosen: string | undefined) =>
    ([-1, 1] as const).map((step) => neighbourAlert(alerts, chosen, middleMs, step)?.id);
  expect(ids(undefined)).toEqual(["a", "b"]);
  expect(ids("b")).toEqual(["a", "c"]);
  expect(ids("c")).toEqual(["b", undefined]);
});
