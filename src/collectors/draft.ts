import { parseExact } from "../lib/exact-json.ts";
import { startOfDay } from "../lib/time.ts";
import {
  classOfType,
  sourceName,
  type EventClass,
  type EventDraft,
  type JsonObject,
  type Severity,
} from "../model/event.ts";
import type { ReadEvent } from "./reading.ts";

// From what a reader understood to what is stored.

/** An event on its way between threads. Its `raw` goes as the text that is stored anyway: that is cheaper than a copy. */
export interface PackedDraft {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly class: EventClass;
  readonly timestampMs: number;
  readonly rawText: string;
}

/** Few types make up most events: what follows from one is found out once. */
const TYPES_REMEMBERED_MAX = 1000;
const classes = new Map<string, EventClass>();

function classOf({ type, class: told }: ReadEvent): EventClass {
  if (told !== undefined) return classOfType(type, told);
  const known = classes.get(type);
  if (known) return known;
  const found = classOfType(type);
  if (classes.size < TYPES_REMEMBERED_MAX) classes.set(type, found);
  return found;
}

/** `nowMs` stands in for a time that the sender does not say. */
export function toDraft(event: ReadEvent, platform: string, nowMs: number): EventDraft {
  const { raw } = event;
  return { ...factsOf(event, platform, nowMs), raw, enrichment: {} };
}

export function packDraft(event: ReadEvent, platform: string, nowMs: number): PackedDraft {
  return { ...factsOf(event, platform, nowMs), rawText: JSON.stringify(event.raw) };
}

function factsOf(event: ReadEvent, platform: string, nowMs: number): Omit<PackedDraft, "rawText"> {
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

/** Many of them between threads: one text and a few numbers are copied faster than an object for each. */
export interface DraftColumns {
  /** What events have in common, each combination once. */
  readonly kinds: readonly DraftKind[];
  readonly kindOf: Uint32Array;
  readonly timesMs: Float64Array;
  /** Where each one's `rawText` ends in the text. */
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

/** All of them, or those of one UTC day. */
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
