import { spawnSync } from "node:child_process";
import { CannotInstall, installOpenSearch } from "./opensearch-install.ts";
import { postgresPrograms } from "./postgres.ts";

// npm run test:cluster: the suites of vitest.cluster.config.ts, or in words why they cannot run here.

async function findMissing(): Promise<string | undefined> {
  if (postgresPrograms() === undefined) return "PostgreSQL is not installed (apt-get install postgresql)";
  if (process.env["OPENSEARCH_URL"]) return undefined;
  try {
    await installOpenSearch();
    return undefined;
  } catch (error) {
    if (error instanceof CannotInstall) return error.message;
    throw error;
  }
}

const missing = await findMissing();
if (missing === undefined) {
  const args = ["run", "--config", "vitest.cluster.config.ts", ...process.argv.slice(2)];
  process.exitCode = spawnSync("vitest", args, { stdio: "inherit" }).status ?? 1;
} else console.log(`skipped: the suites of the API on PostgreSQL and OpenSearch, because ${missing}`);
