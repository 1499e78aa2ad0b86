import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import { ENTITY_KINDS } from "../../../model/entity.ts";
import type { EntityMatches, EntityQuery, EntitySummary } from "../../../model/entity-query.ts";
import { foldCase } from "../../../lib/text.ts";
import { ENTITY_COLUMNS } from "./entity-schema.ts";
import type { ColumnQuery } from "./query-runner.ts";
import type { Snapshot } from "./memtables.ts";
import { Parameters, SEGMENTS } from "./sql.ts";

// Searches for entities, on disk and in memtables.

/** Entity rows that a search reads first: the newest days that have so many. If they have few matches, it reads more. */
const FIRST_ROWS = 50_000;
const MORE_ROWS_FACTOR = 16;
/** With so many matches, older days are left out. */
const MATCHES_ENOUGH = 1000;
/** If rows were merged with those of a memtable since the snapshot, the query would count them twice. */
const ATTEMPTS_MAX = 3;

export async function searchEntities(query: ColumnQuery, search: EntityQuery): Promise<EntityMatches> {
  const { memtables } = query.columns.follower;
  const [fromMs, toMs] = [startOfDay(search.fromMs), startOfDay(search.toMs + DAY_MS - 1)];
  // Before reading: what is counted meanwhile may be missing in the answer.
  const isCounted = !memtables.entities.hasBacklog(fromMs, toMs);
  const days = [...memtables.entities.rowsByDay]
    .filter(([day]) => day >= fromMs && day < toMs)
    .sort(([a], [b]) => b - a);
  let read = 0;
  for (let rowsMax = FIRST_ROWS; ; rowsMax *= MORE_ROWS_FACTOR) {
    let rows = 0;
    while (read < days.length && (rows === 0 || rows + days[read]![1] <= rowsMax)) rows += days[read++]![1];
    // A third query would read these days again: what is left is cheaper to read now, unless it is more.
    const rest = days.slice(read).reduce((sum, [, count]) => sum + count, 0);
    if (rowsMax > FIRST_ROWS && rest <= rows) read = days.length;
    const isAll = read === days.length;
    const range = { fromMs: isAll ? fromMs : days[read - 1]![0], toMs };
    const { entities, total } = await readEntities(query, { ...search, ...range });
    if (!isAll && total < Math.max(MATCHES_ENOUGH, search.limit)) {
      // The next query reads these days again, which costs less than merging two answers.
      continue;
    }
    return { entities, total, ...range, isComplete: isAll && isCounted };
  }
}

type FoundEntities = Pick<EntityMatches, "entities" | "total">;

async function readEntities(query: ColumnQuery, search: EntityQuery): Promise<FoundEntities> {
  const { memtables } = query.columns.follower;
  for (let attempt = 1; ; attempt++) {
    const { merges } = memtables.entities;
    const snapshot = memtables.snapshot();
    try {
      const found = await readSnapshot(query.run, snapshot, search);
      if (memtables.entities.merges === merges || attempt === ATTEMPTS_MAX) return found;
    } finally {
      snapshot.release();
    }
  }
}

async function readSnapshot(
  run: ColumnQuery["run"],
  { entities: inMemory, segments }: Snapshot,
  { search, isWhole, kinds, fromMs, toMs, limit }: EntityQuery,
): Promise<FoundEntities> {
  const parameters = new Parameters(undefined, segments);
  const needle = parameters.bind(foldCase(search));
  const test = isWhole
    ? `folded = ${needle} AND coalesce(value, folded) = ${parameters.bind(search)}`
    : `contains(folded, ${needle})`;
  const codes = kinds?.map((kind) => ENTITY_KINDS.indexOf(kind)).join(", ");
  const matching = (from: string) =>
    `SELECT ${ENTITY_COLUMNS} FROM ${from} WHERE day >= ${fromMs} AND day < ${toMs}
       AND ${codes === undefined ? "TRUE" : `kind IN (${codes})`} AND ${test}`;
  const parts = [
    `${matching("entities")} AND lot <= ${SEGMENTS}`,
    ...(inMemory === undefined ? [] : [matching(inMemory)]),
  ];
  const found = await run(
    `SELECT kind, value, events, first_ts, last_ts, count(*) OVER () AS total FROM
       (SELECT kind, coalesce(value, folded) AS value, folded, sum(events) AS events, min(first_ts) AS first_ts, max(last_ts) AS last_ts
        FROM (${parts.join(" UNION ALL ")}) AS entities GROUP BY kind, entities.value, folded)
     ORDER BY folded = ${needle} DESC, starts_with(folded, ${needle}) DESC, last_ts DESC, kind, value LIMIT ${limit}`,
    parameters,
  );
  const entities = found.map(([kind, value, events, firstSeenMs, lastSeenMs]): EntitySummary => ({
    kind: ENTITY_KINDS[Number(kind)]!,
    value: value as string,
    firstSeenMs: Number(firstSeenMs),
    lastSeenMs: Number(lastSeenMs),
    events: Number(events),
  }));
  return { entities, total: Number(found[0]?.[5] ?? 0) };
}
