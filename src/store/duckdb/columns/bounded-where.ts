import type { Condition } from "../../../model/condition.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import type { RunSql } from "./aggregate.ts";
import { splitByCost, type Costly } from "./condition-cost.ts";
import { and, FALSE, onlyThen, type Parameters } from "./sql.ts";
import { conditionSql } from "./where.ts";

// Turns a condition into SQL that can be interrupted. Nothing stops DuckDB within a vector, so rows on which the condition
// may be expensive (long texts, large patterns) are evaluated beforehand, one slice at a time. Their matches go into a table
// that the SQL of the query refers to. The query can be stopped between two slices. Most queries have no such rows.

/** The first slices are this much smaller than allowed; they grow while they are fast. */
const SLICES_TOGETHER_MAX = 16;
const QUICK_MS = 500;
/** Slices that one query returns. */
const SLICES_MAX = 1000;

/** The rows to evaluate, and the means to do it. */
export interface BoundedScope {
  readonly platform: string;
  readonly parameters: Parameters;
  /** SQL to select from. */
  readonly rows: string;
  /** Throws when the query has been stopped. */
  readonly run: RunSql;
  /** An upper bound of the cost of any row, by this SQL. */
  readonly mostNs: (nsSql: string) => Promise<number>;
  /** Returns the name of a table that does not exist yet; the caller drops it at the end. */
  readonly newTable: () => string;
}

export async function boundedWhere(condition: Condition, rangeSql: string, scope: BoundedScope): Promise<string> {
  const { platform, parameters } = scope;
  const { cheap, costly } = splitByCost(condition, parameters.context);
  const cheapSql = and([rangeSql, conditionSql(cheap, platform, parameters)]);
  if (!costly || cheapSql === FALSE) return cheapSql;
  const { nsSql, lightNsMax } = costly;
  const costlySql = conditionSql(costly.condition, platform, parameters);
  if ((await scope.mostNs(nsSql)) <= lightNsMax) return and([cheapSql, costlySql]);

  const isLight = `${nsSql} <= ${lightNsMax}`;
  const heavy = { whereSql: and([cheapSql, `${nsSql} > ${lightNsMax}`]), costlySql, costly };
  const table = await matchHeavy(heavy, scope);
  const heavySql = table === undefined ? FALSE : `seq IN (SELECT seq FROM ${table})`;
  return and([cheapSql, `(CASE WHEN ${isLight} THEN ${costlySql} ELSE ${heavySql} END)`]);
}

/** Rows that are evaluated in slices. */
interface Heavy {
  readonly whereSql: string;
  readonly costlySql: string;
  readonly costly: Costly;
}

/** Rows between two sequence numbers, both inclusive. */
interface SeqSlice {
  readonly first: number;
  readonly last: number;
}

/** Creates the table of matches among expensive rows; undefined if there are no such rows. */
async function matchHeavy(heavy: Heavy, scope: BoundedScope): Promise<string | undefined> {
  const { rows, run, parameters } = scope;
  const { whereSql, costlySql } = heavy;
  let slices = await slicesAfter(-1, heavy, scope);
  if (slices.length === 0) return undefined;
  const table = scope.newTable();
  await run(`CREATE TABLE ${table}(seq BIGINT)`, parameters);
  let together = 1;
  while (slices.length > 0) {
    for (let at = 0; at < slices.length;) {
      const { first } = slices[at]!;
      at = Math.min(at + together, slices.length);
      const { last } = slices[at - 1]!;
      const startedAt = performance.now();
      await run(
        `INSERT INTO ${table} SELECT seq FROM ${rows}
         WHERE seq BETWEEN ${first} AND ${last} AND ${onlyThen(whereSql, costlySql)}`,
        parameters,
      );
      const isQuick = performance.now() - startedAt < QUICK_MS;
      together = isQuick ? Math.min(together * 2, SLICES_TOGETHER_MAX) : Math.max(1, together / 2);
    }
    slices = slices.length < SLICES_MAX ? [] : await slicesAfter(slices.at(-1)!.last, heavy, scope);
  }
  return table;
}

/** The next slices in order of arrival. A row that alone exceeds the limit of a slice has a slice of its own. */
async function slicesAfter(
  after: number,
  { whereSql, costly: { nsSql, sliceNsMax, rowNsMax } }: Heavy,
  { rows, run, parameters }: BoundedScope,
): Promise<SeqSlice[]> {
  const found = await run(
    `SELECT min(seq), max(seq), max(ns) FROM
       (SELECT seq, ns, floor((sum(ns) OVER (ORDER BY seq) - ns) / ${sliceNsMax / SLICES_TOGETHER_MAX}) AS slice FROM
         (SELECT seq, ${nsSql} AS ns FROM ${rows} WHERE seq > ${after} AND ${whereSql}))
     GROUP BY slice ORDER BY 1 LIMIT ${SLICES_MAX}`,
    parameters,
  );
  const slices = found.map(([first, last, ns]) => ({ first: Number(first), last: Number(last), ns: Number(ns) }));
  if (slices.some(({ ns }) => ns > rowNsMax)) {
    throw new QueryRefused(
      "query",
      "has too many or too large patterns for the longest stored texts: use fewer, or narrow the other filters",
    );
  }
  return slices;
}
