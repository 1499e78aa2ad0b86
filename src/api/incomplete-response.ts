import { formatTime } from "../lib/time.ts";
import type { TimeRange } from "../model/query.ts";
import type { MissingDay, Store } from "../store/ports/store.ts";
import type { ApiResponse, IncompleteDays } from "./response.ts";

// Responses that lack stored rows because the file of their day was lost or damaged.

/** Days listed in one response; further days are only counted. */
const DAYS_LISTED_MAX = 20;

function incompleteDays(missing: readonly MissingDay[]): IncompleteDays | undefined {
  if (missing.length === 0) return undefined;
  const days = missing
    .slice(0, DAYS_LISTED_MAX)
    .map(({ day, rows }) => ({ day: formatTime(day).slice(0, 10), missing: rows }));
  const more = missing.length - days.length;
  const named = days.map(({ day, missing: rows }) => `${day} (${rows})`).join(", ");
  return { header: more > 0 ? `${named}, and ${more} more days` : named, days };
}

/** Adds the incomplete days in the range to a response. */
export async function markIncomplete(
  response: ApiResponse,
  store: Pick<Store, "missing">,
  kind: MissingDay["kind"] | readonly MissingDay["kind"][],
  range: TimeRange,
): Promise<ApiResponse> {
  const kinds = typeof kind === "string" ? [kind] : kind;
  const missing = await Promise.all(kinds.map((each) => store.missing(each, range)));
  const incomplete = incompleteDays(missing.flat());
  return incomplete && response.kind !== "stream" ? { ...response, incomplete } : response;
}
