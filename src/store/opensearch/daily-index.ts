import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { TimeRange } from "../../model/query.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";

// Daily indices: `<name>-YYYY.MM.DD`, by the UTC day of a document's time.

export interface DailyIndex {
  readonly index: string;
  readonly day: number;
  readonly shards: number;
}

export function dailyIndexName(name: string, ms: number): string {
  return `${name}-${new Date(startOfDay(ms)).toISOString().slice(0, 10).replaceAll("-", ".")}`;
}

/** The day of an index; undefined if its name is not one of these. */
export function dayOfIndex(name: string, index: string): number | undefined {
  if (!index.startsWith(`${name}-`)) return undefined;
  const [, year, month, day] = /^(\d{4})\.(\d{2})\.(\d{2})$/.exec(index.slice(name.length + 1)) ?? [];
  return day === undefined ? undefined : Date.UTC(Number(year), Number(month) - 1, Number(day));
}

/** The days that overlap the range. */
export function overlapping(
  indices: readonly DailyIndex[],
  { fromMs = -Infinity, toMs = Infinity }: TimeRange,
): DailyIndex[] {
  return indices.filter(({ day }) => day < toMs && day + DAY_MS > fromMs);
}

/** The stored days that overlap the range, in order of time. A closed index is among them: queries must not miss it. */
export async function listDailyIndices(
  client: OpenSearchClient,
  name: string,
  range: TimeRange = {},
  signal?: AbortSignal,
): Promise<DailyIndex[]> {
  const answer = await client.send<Record<string, { settings: { index: { number_of_shards: string } } }>>(
    { operation: "indices" },
    {
      method: "GET",
      path: `/${name}-2*/_settings/index.number_of_shards`,
      query: { expand_wildcards: "open,closed", allow_no_indices: true },
      signal,
    },
  );
  const all = Object.entries(answer).flatMap(([index, { settings }]) => {
    const day = dayOfIndex(name, index);
    return day === undefined ? [] : [{ index, day, shards: Number(settings.index.number_of_shards) }];
  });
  return overlapping(all, range).sort((a, b) => a.day - b.day);
}
