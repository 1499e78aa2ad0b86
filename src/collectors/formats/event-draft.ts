import { parseExact } from "../../lib/exact-json.ts";
import { startOfDay } from "../../lib/time.ts";
import {
  classOfType,
  sourceName,
  type EventClass,
  type EventDraft,
  type JsonObject,
  type Severity,
} from "../../model/event.ts";
import type { ParsedEvent } from "./reading.ts";

// Turns parsed events into drafts for the store.

/** A draft sent between threads. `raw` travels as the text that is stored anyway, which is cheaper than copying the object. */
export interface PackedDraft {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly class: EventClass;
  readonly timestampMs: number;
  readonly rawText: string;
}

/** Types whose class is cached: few types make up most events. */
const TYPES_CACHED_MAX = 1000;
const classes = new Map<string, EventClass>();

function classOf({ type, class: ownClass }: ParsedEvent): EventClass {
  if (ownClass !== undefined) return classOfType(type, ownClass);
  const cached = classes.get(type);
  if (cached) return cached;
  const eventClass = classOfType(type);
  if (classes.size < TYPES_CACHED_MAX) classes.set(type, eventClass);
  return eventClass;
}

/** `nowMs` stands in for a missing time. */
export function toDraft(event: ParsedEvent, platform: string, nowMs: number): EventDraft {
  const { raw } = event;
  return { ...draftFields(event, platform, nowMs), raw, enrichment: {} };
}

export function packDraft(event: ParsedEvent, platform: string, nowMs: number): PackedDraft {
  return { ...draftFields(event, platform, nowMs), rawText: JSON.stringify(event.raw) };
}

function draftFields(event: ParsedEvent, platform: string, nowMs: number): Omit<PackedDraft, "rawText"> {
  return {
    type: event.type,
    source: sourceName(platform, event.source),
    severity: event.severity,
    class: classOf(event),
    timestampMs: event.timestampMs ?? nowMs,
  };
}

export function unpackDraft(packed: PackedDraft): EventDraft {
  return { ...packed, raw: parseExact(packed.rawText) as JsonObject, enrichment: {} };
}

/** Many drafts in columns: one text and a few arrays are copied faster than an object per draft. */
export interface DraftColumns {
  /** Distinct combinations of the shared fields. */
  readonly kinds: readonly DraftKind[];
  readonly kindOf: Uint32Array;
  readonly timesMs: Float64Array;
  /** End of each draft's `rawText` in `text`. */
  readonly ends: Uint32Array;
  readonly text: string;
}

type DraftKind = Pick<PackedDraft, "type" | "source" | "severity" | "class">;

export function toColumns(drafts: readonly PackedDraft[]): DraftColumns {
  const kinds: DraftKind[] = [];
  const kindOf = new Uint32Array(drafts.length);
  const timesMs = new Float64Array(drafts.length);
  const ends = new Uint32Array(drafts.length);
  let end = 0;
  for (const [index, draft] of drafts.entries()) {
    const known = kinds.findLastIndex((kind) => isOfKind(draft, kind));
    if (known < 0) kinds.push({ type: draft.type, source: draft.source, severity: draft.severity, class: draft.class });
    kindOf[index] = known < 0 ? kinds.length - 1 : known;
    timesMs[index] = draft.timestampMs;
    ends[index] = end += draft.rawText.length;
  }
  return { kinds, kindOf, timesMs, ends, text: drafts.map(({ rawText }) => rawText).join("") };
}

/** Unpacks all drafts, or those of one UTC day. */
export function fromColumns({ kinds, kindOf, timesMs, ends, text }: DraftColumns, day?: number): EventDraft[] {
  const drafts: EventDraft[] = [];
  for (const [index, timestampMs] of timesMs.entries()) {
    if (day !== undefined && startOfDay(timestampMs) !== day) continue;
    const rawText = text.slice(ends[index - 1] ?? 0, ends[index]);
    drafts.push(unpackDraft({ ...kinds[kindOf[index]!]!, timestampMs, rawText }));
  }
  return drafts;
}

function isOfKind(draft: PackedDraft, kind: DraftKind): boolean {
  return (
    draft.type === kind.type &&
    draft.source === kind.source &&
    draft.severity === kind.severity &&
    draft.class === kind.class
  );
}
