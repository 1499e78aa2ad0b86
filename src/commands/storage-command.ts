import { existsSync } from "node:fs";
import type { Command } from "commander";
import { openSearchOf, postgresOf } from "../config/settings.ts";
import { formatTime } from "../lib/time.ts";
import { CommandFailure, explainFailure } from "./command-failure.ts";
import { addSettingFlags, requireSettings } from "./setting-flags.ts";
import { print, printJson } from "./terminal.ts";

export function addStorage(program: Command): void {
  const storage = program
    .command("storage")
    .description("show missing data and removals that wait for a confirmation, and decide about them");

  const status = storage
    .command("status")
    .description("list days with missing rows, and whether retention waits for a confirmation")
    .option("--json", "as one JSON object");
  addSettingFlags(status, ["data_dir", "index_prefix"]).action(async ({ json }: { json?: true }) => {
    const { missing, heldAt } = await withNotes(status, async (notes) => ({
      missing: await notes.missing(),
      heldAt: await notes.heldAt(),
    }));
    const days = missing.map(({ kind, day, rows, why }) => ({
      kind,
      day: formatTime(day).slice(0, 10),
      ...(why === undefined ? { missing: rows } : { unreadable: why }),
    }));
    if (json) return printJson({ missing: days, retention_held_at: heldAt === null ? null : formatTime(heldAt) });
    for (const each of days)
      print(
        "unreadable" in each
          ? `${each.day}, ${each.kind}: ${each.unreadable}.`
          : `${each.day}: ${each.missing} ${each.kind} are missing.`,
      );
    if (days.length === 0) print("No rows are missing.");
    print(
      heldAt === null
        ? "Retention is not waiting for a confirmation."
        : `Retention is paused since its run at ${formatTime(heldAt)}; the log and /readyz say why.`,
    );
  });

  const confirm = storage
    .command("confirm-removal")
    .description("confirm the removal that retention holds back; a running server removes the data within seconds");
  addSettingFlags(confirm, ["data_dir", "index_prefix"]).action(async () => {
    const heldAt = await withNotes(confirm, (notes) => notes.confirm());
    if (heldAt === null) throw new CommandFailure("Retention is not waiting for a confirmation.");
    print(`Confirmed: retention removes the data that was due at ${formatTime(heldAt)}.`);
  });

  const accept = storage
    .command("accept-losses")
    .description(
      "accept missing rows as lost, so that responses are no longer marked incomplete; stop the server first",
    );
  addSettingFlags(accept, ["data_dir", "index_prefix"]).action(async () => {
    const rows = await withNotes(accept, async (notes) => notes.acceptLosses());
    if (rows === undefined) {
      throw new CommandFailure(
        "Data is kept in OpenSearch (store.data), which loses no single rows: open or restore the indices that `tocsin storage status` names.",
      );
    }
    print(`${rows.toLocaleString("en-US")} missing rows are accepted as lost.`);
  });
}

type RemovalNotes = Awaited<ReturnType<typeof import("../store/open-store.ts").openStorageNotes>>;

async function withNotes<Value>(command: Command, use: (notes: RemovalNotes) => Promise<Value>): Promise<Value> {
  const { settings } = requireSettings(command);
  const { dataDir, indexPrefix } = settings;
  if (!existsSync(dataDir)) throw new CommandFailure(`There is no data folder ${dataDir}.`);
  const { openStorageNotes } = await import("../store/open-store.ts");
  try {
    const notes = await openStorageNotes({
      dataDir,
      indexPrefix,
      postgres: postgresOf(settings),
      opensearch: openSearchOf(settings),
    });
    try {
      return await use(notes);
    } finally {
      await notes.close();
    }
  } catch (error) {
    throw explainFailure(error, settings);
  }
}
