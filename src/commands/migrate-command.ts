import { randomUUID } from "node:crypto";
import { Option, type Command } from "commander";
import type { Settings } from "../config/settings.ts";
import { formatTime } from "../lib/time.ts";
import type { MigrationOptions, MigrationOutcome, MigrationStep } from "../migration/migrate.ts";
import { STORE_NAMES, type StoreName } from "../migration/migration-state.ts";
import type { StoreArchive } from "../store/ports/archive.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import { startCopyProgress } from "./copy-progress.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { formatTable, print, printJson } from "./terminal.ts";

const DIFFERENCES_SHOWN_MAX = 50;

interface MigrateFlags {
  readonly from: StoreName;
  readonly to: StoreName;
  readonly dryRun?: true;
  readonly json?: true;
}

const LABELS: Readonly<Record<MigrationStep, string>> = {
  events: "Copying events",
  flows: "Copying flows",
  cases: "Copying alerts, rules and the rest",
  columns: "Building columns",
  verification: "Verifying",
};

/** What to set so that the service uses the store. */
const STORE_SETTINGS: Readonly<Record<StoreName, string>> = {
  embedded: "store.cases: embedded\nstore.data: embedded",
  postgres: "store.cases: postgres\nstore.data: embedded",
  cluster: "store.cases: postgres\nstore.data: opensearch",
};

export function addMigrate(program: Command): void {
  const store = (flags: string, about: string) =>
    new Option(flags, about).choices(STORE_NAMES).makeOptionMandatory(true);
  const command = program
    .command("migrate")
    .description("copy everything from one store to another: a data folder into PostgreSQL and OpenSearch, or back")
    .addOption(store("--from <store>", "where the data are"))
    .addOption(store("--to <store>", "where they are copied to; must be empty"))
    .option("--dry-run", "check both stores and list what would be copied")
    .option("--json", "the result as one JSON object");
  addSettingFlags(command)
    .addHelpText(
      "after",
      `
Stores:
  embedded   everything in the folder of data_dir
  postgres   alerts, rules, keys and the like in the database of postgres.url; events and flows in the folder
  cluster    the same in PostgreSQL; events and flows in OpenSearch (opensearch.addresses, index_prefix)

The settings say where both stores are; store.cases and store.data do not matter here. Stop every service on either store
first. The source is not changed. A migration that was interrupted goes on where it ended when the same command is run again,
and no service starts on its target before it is complete. At the end everything is read back from the target and compared
with the source, by numbers and checksums; after it is complete, the same command only compares again.

Examples:
  tocsin migrate --from embedded --to cluster --dry-run
  tocsin migrate --from embedded --to cluster --data-dir /srv/tocsin --postgres-url postgres://tocsin@db/tocsin \\
    --opensearch-addresses https://search1:9200
  tocsin migrate --from cluster --to embedded --data-dir /srv/tocsin-folder

Exit codes: 0 copied and verified, ${EXIT_FAILED} not copied, or the copy differs, ${EXIT_WRONG_USE} the command line or the configuration is wrong.`,
    )
    .action(async (flags: MigrateFlags) => {
      const { settings } = requireSettings(command);
      requirePair(flags, settings);
      try {
        await withArchives(flags, settings, (options) => run(flags, options));
      } catch (error) {
        throw explainFailure(error, settings);
      }
    });
}

function requirePair({ from, to }: MigrateFlags, { postgres }: Settings): void {
  const wrong = (message: string) => new CommandFailure(message, EXIT_WRONG_USE);
  if (from === to) throw wrong("--from and --to are the same store.");
  if (from !== "embedded" && to !== "embedded")
    throw wrong(`From ${from} to ${to} there is no direct way: migrate to embedded first, and from there.`);
  if (postgres.url === null) throw wrong("Set postgres.url: it names the database.");
}

async function withArchives(
  { from, to }: MigrateFlags,
  settings: Settings,
  work: (options: MigrationOptions) => Promise<void>,
): Promise<void> {
  const { openFolderArchive, openClusterArchive } = await import("../store/open-archive.ts");
  const { createLog } = await import("../lib/log.ts");
  const { dataDir, indexPrefix, platform, opensearch } = settings;
  const log = createLog({ level: "error", destination: process.stderr });
  const shared = { dataDir, indexPrefix, platform, log, now: Date.now };
  const postgres = { ...settings.postgres, url: settings.postgres.url! };
  const hasData = from === "cluster" || to === "cluster";
  const open = (name: StoreName) =>
    name === "embedded"
      ? openFolderArchive({ ...shared, hasData })
      : openClusterArchive({ ...shared, postgres, opensearch: hasData ? opensearch : undefined });
  const opened: StoreArchive[] = [];
  // The lock of the folder first: it is what keeps two of these apart.
  const folder = await open("embedded");
  opened.push(folder);
  try {
    const other = await open(from === "embedded" ? to : from);
    opened.push(other);
    const [source, target] = from === "embedded" ? [folder, other] : [other, folder];
    await work({ source, target, from, to, platform, id: randomUUID(), now: Date.now, onProgress: () => undefined });
  } finally {
    for (const archive of opened.reverse()) await archive.close();
  }
}

async function run({ from, to, dryRun, json }: MigrateFlags, options: MigrationOptions): Promise<void> {
  const { planMigration, runMigration } = await import("../migration/migrate.ts");
  if (dryRun) {
    const plan = await planMigration(options);
    if (json) printJson({ from, to, state: plan.began, ...(await summaryOf(plan)) });
    else print(await planText(from, to, plan));
    return;
  }
  const progress = startCopyProgress();
  const startedAt = performance.now();
  let outcome: MigrationOutcome;
  try {
    outcome = await runMigration({
      ...options,
      onProgress: (step, done, total) => progress.report(LABELS[step], done, total),
    });
  } finally {
    progress.end();
  }
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
  const { rows, differences, began } = outcome;
  if (json) printJson({ from, to, state: began, rows, seconds, differences, ...(await summaryOf(outcome)) });
  if (differences.length > 0) {
    const shown = differences.slice(0, DIFFERENCES_SHOWN_MAX);
    const lines = shown.map(
      ({ of, source, target }) =>
        `  ${of}: ${countOf(source.rows, "row")}, checksum ${source.checksum} in the source; ` +
        `${countOf(target.rows, "row")}, checksum ${target.checksum} in the target`,
    );
    const more = differences.length > shown.length ? `\n  and ${differences.length - shown.length} more` : "";
    throw new CommandFailure(
      `The copy differs from the source:\n${lines.join("\n")}${more}\n` +
        (began === "complete"
          ? "The migration was complete before: a service, or somebody else, has changed the target since."
          : "Empty the target and begin anew. The source is unchanged."),
    );
  }
  if (!json) print(doneText(from, to, outcome, seconds));
}

async function summaryOf({ inventory }: Pick<MigrationOutcome, "inventory">) {
  const { contentOf } = await import("../migration/inventory.ts");
  return { content: Object.fromEntries(contentOf(inventory).map(({ kind, rows }) => [kind, rows])) };
}

async function planText(
  from: StoreName,
  to: StoreName,
  { inventory, began }: Pick<MigrationOutcome, "inventory" | "began">,
): Promise<string> {
  const { contentOf } = await import("../migration/inventory.ts");
  const rows = contentOf(inventory).map(({ kind, rows: count }) => [kind, count.toLocaleString("en-US")]);
  const days = inventory.events.map(({ day }) => day);
  const span =
    days.length === 0 ? "" : `, ${formatTime(days[0]!).slice(0, 10)} to ${formatTime(days.at(-1)!).slice(0, 10)}`;
  const next = {
    new: "The target is empty. Nothing was copied.",
    resumed: "The target has a part of this migration already, which would go on. Nothing was copied.",
    complete: "The target has all of it already. Nothing was copied.",
  };
  return `From ${from} to ${to}${span}:\n\n${formatTable(["kind", "rows"], rows)}\n\n${next[began]}`;
}

function doneText(from: StoreName, to: StoreName, { rows, began }: MigrationOutcome, seconds: number): string {
  const what =
    began === "complete"
      ? `The migration from ${from} to ${to} was complete already. ${countOf(rows, "row")} in the target were compared again and are equal`
      : `Copied and verified ${countOf(rows, "row")} from ${from} to ${to}`;
  const settings = STORE_SETTINGS[to].replaceAll(/^(\S+)\.(\S+): (\S+)$/gm, "  $1.$2: $3");
  return `${what} (${seconds.toFixed(1)} s).

Next, set for every node:

${settings}

and start the service. The source is unchanged: keep it until you are satisfied, and start no service on it. Files of exports
stay in data_dir/exports; copy them if the service uses another folder.`;
}
