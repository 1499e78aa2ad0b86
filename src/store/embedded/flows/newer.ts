import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { NewerFile } from "../../../lib/newer-file.ts";
import { COLUMNS_VERSION } from "../columns/table.ts";
import { readDuckVersion } from "../duckdb-version.ts";
import { columnsFile, flowsFolder, isFlowUnitFile } from "../layout.ts";
import { UNIT_MIGRATIONS } from "./table.ts";

/** Throws NewerFile where a newer version has written to a DuckDB file of the folder: opened for reading only, none is changed. */
export async function refuseNewerDuckFiles(dataDir: string): Promise<void> {
  const folder = flowsFolder(dataDir);
  const units = existsSync(folder) ? readdirSync(folder).filter(isFlowUnitFile) : [];
  const files: [path: string, known: number][] = [
    ...units.map((name): [string, number] => [join(folder, name), UNIT_MIGRATIONS.length]),
    ...(existsSync(columnsFile(dataDir)) ? [[columnsFile(dataDir), COLUMNS_VERSION] as [string, number]] : []),
  ];
  if (files.length === 0) return;
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    for (const [path, known] of files) {
      try {
        await connection.run(`ATTACH '${path.replaceAll("'", "''")}' AS looked_at (READ_ONLY)`);
      } catch {
        // Damage is told of by whoever opens the file to use it.
        continue;
      }
      const found = await readDuckVersion(connection, "looked_at").catch(() => 0);
      await connection.run("DETACH looked_at");
      if (found > known) throw new NewerFile(path, found, known);
    }
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
