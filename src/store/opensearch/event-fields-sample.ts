import type { FieldFilter } from "../ports/event-engine.ts";
import type { EventFields } from "../ports/event-fields.ts";
import { FieldTally } from "../queries/field-tally.ts";
import { TimeSlices } from "../queries/time-slices.ts";
import { both, filterQuery, term } from "./event-query.ts";
import { NEWEST_FIRST, textOf, totalOf, type EventSearch } from "./event-search.ts";

// The fields of events, from a sample: the newest events of each type stand for all of that type.

const SAMPLED_EVENTS_MAX = 2000;
const SAMPLED_CHARACTERS_MAX = 8_000_000;
const TYPES_MAX = 200;
const PAGE_EVENTS = 200;
const TALLY_SLICE_MS = 10;

export async function sampleFields(
  search: EventSearch,
  filter: FieldFilter,
  signal: AbortSignal,
): Promise<EventFields> {
  const query = filterQuery(filter);
  return search.atOnePoint(filter, async (view) => {
    const counts = await view({
      query,
      size: 0,
      track_total_hits: true,
      aggs: { types: { terms: { field: "type", size: TYPES_MAX } } },
    });
    const total = totalOf(counts);
    const types = counts.aggregations?.["types"]?.buckets ?? [];
    const isWhole = total <= SAMPLED_EVENTS_MAX;
    const strata = isWhole
      ? [{ query, total }]
      : types.map(({ key, doc_count }) => ({ query: both(query, term("type", key as string)), total: doc_count }));
    const eventsMax = Math.max(1, Math.floor(SAMPLED_EVENTS_MAX / Math.max(1, strata.length)));
    const charactersMax = SAMPLED_CHARACTERS_MAX / Math.max(1, strata.length);
    // Types past the limit are taken to have the same fields as the others.
    const shown = strata.reduce((sum, stratum) => sum + stratum.total, 0);
    const tally = new FieldTally();
    const slices = new TimeSlices(signal, TALLY_SLICE_MS);
    for (const stratum of strata) {
      const texts: string[] = [];
      let characters = 0;
      let after: readonly (string | number)[] | undefined;
      while (texts.length < eventsMax && characters < charactersMax) {
        const { hits } = await view({
          query: stratum.query,
          size: Math.min(PAGE_EVENTS, eventsMax - texts.length),
          sort: NEWEST_FIRST,
          track_total_hits: false,
          ...(after && { search_after: after }),
        });
        for (const hit of hits.hits) {
          if (characters < charactersMax) texts.push(textOf(hit));
          characters += textOf(hit).length;
        }
        if (hits.hits.length === 0) break;
        after = hits.hits.at(-1)!.sort!;
      }
      const weight = (stratum.total * total) / Math.max(1, shown) / Math.max(1, texts.length);
      for (const text of texts) {
        if (slices.isOver) await slices.next();
        tally.add(text, weight);
      }
    }
    return { total, examined: tally.examined, fields: tally.fields() };
  });
}
