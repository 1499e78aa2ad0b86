import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { QueryRefused, StoreUnavailable } from "../../ports/store-errors.ts";
import { explainFailure, queryRows } from "./column-engine.ts";

async function failureOf(sql: string): Promise<unknown> {
  const instance = await DuckDBInstance.create(":memory:", { memory_limit: "16MB", temp_directory: "", threads: "1" });
  const connection = await instance.connect();
  const failure = await queryRows(connection, sql).then(
    () => undefined,
    (error: unknown) => error,
  );
  connection.closeSync();
  instance.closeSync();
  return failure;
}

test("a query that takes too much memory is refused with advice; next to others it may be retried", async () => {
  const failure = await failureOf(
    "SELECT repeat(range::VARCHAR, 10000) AS k, count(*) AS n FROM range(5000) GROUP BY k ORDER BY n DESC, k LIMIT 10",
  );
  const alone = explainFailure(failure, true);
  expect(alone).toBeInstanceOf(QueryRefused);
  expect(alone).toMatchObject({ field: "query", message: expect.stringMatching(/memory.*narrow the time range/) });
  const concurrent = explainFailure(failure, false);
  expect(concurrent).toBeInstanceOf(StoreUnavailable);
  expect(concurrent).toMatchObject({ reason: "queue_full" });
});

test("other failures stay as they are", async () => {
  const failure = await failureOf("SELECT nothing");
  expect(failure).toBeInstanceOf(Error);
  expect(explainFailure(failure, true)).toBe(failure);
});
