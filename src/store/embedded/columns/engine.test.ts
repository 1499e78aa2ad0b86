import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { QuestionRefused, StoreUnavailable } from "../../store.ts";
import { whyFailed, rowsOf } from "./engine.ts";

async function failureOf(sql: string): Promise<unknown> {
  const instance = await DuckDBInstance.create(":memory:", { memory_limit: "16MB", temp_directory: "", threads: "1" });
  const connection = await instance.connect();
  const failure = await rowsOf(connection, sql).then(
    () => undefined,
    (error: unknown) => error,
  );
  connection.closeSync();
  instance.closeSync();
  return failure;
}

test("a question that takes more memory than there is, is refused with what to do; beside others it may be asked again", async () => {
  const failure = await failureOf(
    "SELECT repeat(range::VARCHAR, 10000) AS k, count(*) AS n FROM range(5000) GROUP BY k ORDER BY n DESC, k LIMIT 10",
  );
  const alone = whyFailed(failure, true);
  expect(alone).toBeInstanceOf(QuestionRefused);
  expect(alone).toMatchObject({ field: "query", message: expect.stringMatching(/memory.*narrow the time range/) });
  const beside = whyFailed(failure, false);
  expect(beside).toBeInstanceOf(StoreUnavailable);
  expect(beside).toMatchObject({ reason: "queue_full" });
});

test("what fails for another reason stays what it is", async () => {
  const failure = await failureOf("SELECT nothing");
  expect(failure).toBeInstanceOf(Error);
  expect(whyFailed(failure, true)).toBe(failure);
});
