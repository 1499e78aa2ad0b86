import type { DuckDBConnection } from "@duckdb/node-api";
import { LRUCache } from "lru-cache";
import type { Condition } from "../../../model/condition.ts";
import { listOf } from "./value.ts";

// The engine and the condition language take almost the same patterns. Those that the engine refuses, as too large or
// for a spelling that it does not know, are left to the condition language.

const PATTERNS_REMEMBERED_MAX = 2000;

export class Patterns {
  readonly #isRefused = new LRUCache<string, boolean>({ max: PATTERNS_REMEMBERED_MAX });

  /** Of the patterns in these conditions, those that the engine does not take. */
  async refusedOf(conditions: readonly Condition[], connection: DuckDBConnection): Promise<ReadonlySet<string>> {
    const refused = new Set<string>();
    for (const pattern of new Set(conditions.flatMap(patternsOf))) {
      let isRefused = this.#isRefused.get(pattern);
      if (isRefused === undefined) {
        isRefused = await refuses(connection, pattern);
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
  return condition.operator === "regex" ? (listOf(condition) as readonly string[]) : [];
}

async function refuses(connection: DuckDBConnection, pattern: string): Promise<boolean> {
  try {
    await connection.run("SELECT regexp_matches('', $1)", [pattern]);
    return false;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("Invalid Input Error")) return true;
    throw error;
  }
}
