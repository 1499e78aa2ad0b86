import { parseExact } from "../../../lib/exact-json.ts";
import { formatTime } from "../../../lib/time.ts";
import type { Event, EventDraft, JsonObject } from "../../../model/event.ts";
import type { StoredEvent } from "../../ports/event-engine.ts";
import { readEventId } from "../../files/event-id.ts";

// Groups of events that are committed together.

/** An append that waits for its commit. */
export interface PendingAppend {
  readonly events: readonly Prepared[];
  readonly bytes: number;
  readonly resolve: (stored: StoredEvent[]) => void;
  readonly reject: (error: Error) => void;
}

/** An event with everything needed to store it. */
export interface Prepared extends StoredEvent {
  readonly seq: number;
  readonly day: number;
  readonly ts: number;
  readonly words: string;
  readonly token: string | null;
  /** For the listeners of commits. */
  readonly draft: EventDraft;
}

/** Events of one day in rising order of seq, as columns, which are cheap to pass between threads. */
export interface DayGroup {
  readonly day: number;
  readonly seqs: readonly number[];
  readonly times: readonly number[];
  readonly bodies: readonly string[];
  readonly words: readonly string[];
  readonly tokens: readonly (string | null)[];
}

let formattedMs = Number.NaN;
let formatted = "";

/** Cached, because events that arrive together often have the same time. */
function timeText(ms: number): string {
  if (ms !== formattedMs) {
    formatted = formatTime(ms);
    formattedMs = ms;
  }
  return formatted;
}

/** The event as every read returns it. The id comes first, where reads expect it. */
export function eventText(id: string, draft: EventDraft): string {
  const head = `{"id":"${id}","type":${JSON.stringify(draft.type)},"source":"${draft.source}","class":"${draft.class}","severity":"${draft.severity}"`;
  const raw = draft.rawText ?? JSON.stringify(draft.raw);
  return `${head},"timestamp":"${timeText(draft.timestampMs)}","raw":${raw},"enrichment":${JSON.stringify(draft.enrichment)}}`;
}

/** False for a damaged text. SQLite does not detect damage inside the content of a page. */
export function isEventText(text: string): boolean {
  try {
    const { id } = JSON.parse(text) as { id: string };
    return readEventId(id) !== undefined;
  } catch {
    return false;
  }
}

/** The text of a stored event with additional enrichment. The rest stays byte for byte as the source sent it. */
export function amendedText(text: string, added: JsonObject): string {
  const { enrichment } = parseExact(text) as Event;
  const end = `,"enrichment":${JSON.stringify(enrichment)}}`;
  if (!text.endsWith(end)) throw new Error("the text of a stored event does not end with its enrichment");
  return `${text.slice(0, -end.length)},"enrichment":${JSON.stringify({ ...enrichment, ...added })}}`;
}

/** Events of one day that are committed together. */
export interface DayEvents {
  readonly events: readonly Prepared[];
  /** The same events for the writer. */
  readonly group: DayGroup;
}

export function groupByDay(waiting: readonly PendingAppend[]): DayEvents[] {
  const events = waiting.flatMap((item) => item.events);
  const isOneDay = events.every(({ day }) => day === events[0]!.day);
  const days = isOneDay ? [events] : [...Map.groupBy(events, ({ day }) => day).values()];
  return days.map((part) => ({
    events: part,
    group: {
      day: part[0]!.day,
      seqs: part.map(({ seq }) => seq),
      times: part.map(({ ts }) => ts),
      bodies: part.map(({ text }) => text),
      words: part.map(({ words }) => words),
      tokens: part.map(({ token }) => token),
    },
  }));
}
