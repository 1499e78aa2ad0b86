import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { NewerFile } from "../../lib/newer-file.ts";
import { COLUMNS_VERSION } from "./columns/column-table.ts";
import { readSchemaVersion } from "./schema-version.ts";
import { columnsFile, flowsFolder, isFlowUnitFile } from "../files/layout.ts";
import { FLOW_DAY_MIGRATIONS } from "./flows/flow-table.ts";

/** Throws NewerFile if a newer version has written a DuckDB file of the folder. Files are opened read-only. */
export async function refuseNewerDuckFiles(dataDir: string): Promise<void> {
  const folder = flowsFolder(dataDir);
  const flowDays = existsSync(folder) ? readdirSync(folder).filter(isFlowUnitFile) : [];
  const files: [path: string, known: number][] = [
    ...flowDays.map((name): [string, number] => [join(folder, name), FLOW_DAY_MIGRATIONS.length]),
    ...(existsSync(columnsFile(dataDir)) ? [[columnsFile(dataDir), COLUMNS_VERSION] as [string, number]] : []),
  ];
  if (files.length === 0) return;
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    for (const [path, known] of files) {
      try {
        await connection.run(`ATTACH '${path.replaceAll("'", "''")}' AS checked (READ_ONLY)`);
      } catch {
        // Opening the file for use reports the damage.
        continue;
      }
      const found = await readSchemaVersion(connection, "checked").catch(() => 0);
      await connection.run("DETACH checked");
      if (found > known) throw new NewerFile(path, found, known);
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
