import type { Command } from "commander";
import { CommandFailure, explainFailure } from "./command-failure.ts";
import { addSettingFlags, requireSettings } from "./setting-flags.ts";
import { print, printJson, startProgress } from "./terminal.ts";

export function addRebuild(program: Command): void {
  const command = program
    .command("rebuild")
    .description("rebuild the columns from the journal")
    .option("--json", "the summary as one JSON object");
  addSettingFlags(command, ["data_dir", "platform", "index_prefix"])
    .addHelpText(
      "after",
      `
The journal holds everything; the columns, which answer counts and aggregations, are derived from it. The service mends
damaged columns by itself when it starts: this is for when you want it done before. Stop the server first.

Example:
  tocsin rebuild --data-dir /srv/tocsin`,
    )
    .action(async ({ json }: { json?: true }) => {
      const { settings } = requireSettings(command);
      const { dataDir, platform, indexPrefix, store } = settings;
      if (store.data !== "embedded")
        throw new CommandFailure("There are no columns to rebuild: events are kept in OpenSearch (store.data).");
      const { rebuildColumns } = await import("../store/open-store.ts");
      const { Registry } = await import("prom-client");
      const { createLog } = await import("../lib/log.ts");
      const log = createLog({ level: "error", destination: process.stderr });
      const progress = startProgress("Rebuilding columns");
      const startedAt = performance.now();
      let events = 0;
      try {
        await rebuildColumns({
          dataDir,
          platform,
          indexPrefix,
          registry: new Registry(),
          log,
          onProgress: (done: number, total: number) => {
            events = total;
            progress.report(done, total);
          },
        });
      } catch (error) {
        throw explainFailure(error, settings);
      } finally {
        progress.end();
      }
      const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
      if (json) printJson({ events, seconds, data_dir: dataDir });
      else print(`The columns of ${dataDir} hold ${events.toLocaleString("en-US")} events again (${seconds} s).`);
    });
}
