import { formatTime } from "../lib/time.ts";
import type { TimeRange } from "../model/query.ts";
import type { MissingDay, Store } from "../store/store.ts";
import type { Answer } from "./endpoint.ts";

// Answers that leave something out which was stored once: the file of its day was lost or damaged.

/** Days that are named in one answer; the rest of them is counted. */
const DAYS_NAMED_MAX = 20;

export interface IncompleteDays {
  /** For the header: `2026-11-09 (848), 2026-11-10 (3)`. */
  readonly header: string;
  /** For `meta` of answers that have an envelope. */
  readonly days: readonly { readonly day: string; readonly missing: number }[];
}

function incompleteDays(missing: readonly MissingDay[]): IncompleteDays | undefined {
  if (missing.length === 0) return undefined;
  const days = missing
    .slice(0, DAYS_NAMED_MAX)
    .map(({ day, rows }) => ({ day: formatTime(day).slice(0, 10), missing: rows }));
  const more = missing.length - days.length;
  const named = days.map(({ day, missing: rows }) => `${day} (${rows})`).join(", ");
  return { header: more > 0 ? `${named}, and ${more} more days` : named, days };
}

/** Marks an answer over this range where rows of it are missing. */
export function marked(
  answer: Answer,
  store: Pick<Store, "missing">,
  kind: MissingDay["kind"],
  range: TimeRange,
): Answer {
  const incomplete = incompleteDays(store.missing(kind, range));
  return incomplete && answer.kind !== "stream" ? { ...answer, incomplete } : answer;
}
