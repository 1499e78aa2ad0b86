import type { DuckDBConnection } from "@duckdb/node-api";
import { DigestCache } from "../../../lib/digest-cache.ts";
import { positiveOperator, type Condition } from "../../../model/condition.ts";
import { listOf } from "./value-tests.ts";

// DuckDB accepts almost the same patterns as the condition language. Those that it refuses, because of their size or their
// syntax, are left to scalar functions.

const CACHED_PATTERNS_MAX = 2000;

export class UnsupportedPatterns {
  readonly #isRefused = new DigestCache<boolean>(CACHED_PATTERNS_MAX);

  /** The patterns in these conditions that DuckDB refuses. */
  async among(conditions: readonly Condition[], connection: DuckDBConnection): Promise<ReadonlySet<string>> {
    const refused = new Set<string>();
    for (const pattern of new Set(conditions.flatMap(patternsOf))) {
      let isRefused = this.#isRefused.get(pattern);
      if (isRefused === undefined) {
        isRefused = await isRefusedByDuckDb(connection, pattern);
        this.#isRefused.set(pattern, isRefused);
      }
      if (isRefused) refused.add(pattern);
    }
    return refused;
  }
}

function patternsOf(condition: Condition): readonly string[] {
  if (condition.kind === "not") return patternsOf(condition.of);
  if (condition.kind !== "test") return condition.of.flatMap(patternsOf);
  return positiveOperator(condition.operator) === "regex" ? (listOf(condition) as readonly string[]) : [];
}

async function isRefusedByDuckDb(connection: DuckDBConnection, pattern: string): Promise<boolean> {
  try {
    await connection.run("SELECT regexp_matches('', $1)", [pattern]);
    return false;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("Invalid Input Error")) return true;
    throw error;
  }
}
