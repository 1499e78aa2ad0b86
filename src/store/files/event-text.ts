import { parseExact } from "../../lib/exact-json.ts";
import { formatTime } from "../../lib/time.ts";
import type { Event, EventDraft, JsonObject } from "../../model/event.ts";
import { readEventId } from "./event-id.ts";

// The text of a stored event, the same in every engine.

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
