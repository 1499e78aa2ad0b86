import { describe, inject, test } from "vitest";
import { postgresPrograms } from "./postgres.ts";
import type { DatabaseAnswer } from "./shared-servers.ts";

/** The URL of an empty database of the PostgreSQL server that all test files share. */
export async function testDatabase(): Promise<string> {
  const response = await fetch(inject("sharedServers"));
  if (!response.ok) throw new Error(`no test database: ${await response.text()}`);
  const answer = (await response.json()) as DatabaseAnswer;
  if ("missing" in answer) throw new Error(answer.missing);
  return answer.url;
}

/** Tests that need PostgreSQL. Where it is not installed, one skipped test says so. */
export function describeWithPostgres(name: string, tests: () => void): void {
  if (postgresPrograms() !== undefined) describe(name, tests);
  else
    test.skip(`${name}: not tested here, because PostgreSQL is not installed (apt-get install postgresql)`, () => {});
}
