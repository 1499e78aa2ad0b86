import { timed, withServer, type Bench } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Pages through 100,000 events by cursor: the last pages must cost as much as the first.

const WALK_EVENTS = 100_000;
const PAGE_SIZE = 100;
const COMPARED_PAGES = 50;
const RATIO_MAX = 1.5;

interface Page {
  data: { id: string }[];
  pagination: { next_cursor: string | null };
}

export async function cursor({ dataset }: Bench): Promise<readonly Measurement[]> {
  return withServer(dataset.folder, async (server) => {
    const measurements: Measurement[] = [];
    for (const [name, filter] of [
      ["no filter", ""],
      ["a filter", "&class=security"],
    ] as const) {
      // Excludes the first request, which opens files.
      await server.get(`/v1/events?limit=${PAGE_SIZE}${filter}`);
      const took: number[] = [];
      let walked = 0;
      let after = "";
      while (walked < WALK_EVENTS) {
        const path = `/v1/events?limit=${PAGE_SIZE}${filter}${after && `&after=${after}`}`;
        const page = await timed(() => server.get<Page>(path));
        took.push(page.ms);
        walked += page.value.data.length;
        const next = page.value.pagination.next_cursor;
        if (!next) break;
        after = next;
      }
      const first = spreadOf(took.slice(0, COMPARED_PAGES)).p50;
      const last = spreadOf(took.slice(-COMPARED_PAGES)).p50;
      measurements.push({
        name: `cursor walk of ${walked.toLocaleString("en")} events with ${name}, pages of ${PAGE_SIZE}`,
        result: `${ms(last)} per page for the last ${COMPARED_PAGES}`,
        baseline: `${ms(first)} per page for the first ${COMPARED_PAGES}`,
        ratio: last / first,
        target: `at most ${RATIO_MAX}`,
        met: last / first <= RATIO_MAX,
        values: { first, last, slowest: spreadOf(took).max, walked },
      });
    }
    return measurements;
  });
}
