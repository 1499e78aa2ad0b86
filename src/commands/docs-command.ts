import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { loadSettings, type LoadedSettings } from "../config/config.ts";
import type { OpenApiDocument } from "../docs/api-page.ts";
import { CommandFailure } from "./command-failure.ts";
import { print } from "./terminal.ts";

/** From the folder of the pages. */
const README = "../README.md";

export function addDocs(program: Command): void {
  program
    .command("docs")
    .description(
      "write docs/api.md, docs/configuration.md and the tables of docs/rules.md, events.md, notifications.md, devices.md and README.md from the code",
    )
    .option("--check", "write nothing; fail if a page is out of date")
    .addHelpText("after", "\nExamples:\n  tocsin docs\n  tocsin docs --check")
    .action(async ({ check }: { check?: true }) => {
      const { apiPage } = await import("../docs/api-page.ts");
      const { configurationPage } = await import("../docs/configuration-page.ts");
      const { printRuleTables } = await import("../docs/rules-page.ts");
      const { printEventTables } = await import("../docs/events-page.ts");
      const { printChannelTable } = await import("../docs/notifications-page.ts");
      const folder = fileURLToPath(new URL("../../docs/", import.meta.url));
      const { printDeviceTable } = await import("../docs/devices-page.ts");
      const pages = {
        "api.md": apiPage(await askForOpenApi()),
        "configuration.md": configurationPage(),
        "rules.md": printRuleTables(readFileSync(join(folder, "rules.md"), "utf8")),
        "events.md": printEventTables(readFileSync(join(folder, "events.md"), "utf8")),
        "notifications.md": printChannelTable(readFileSync(join(folder, "notifications.md"), "utf8")),
        "devices.md": printDeviceTable("docs/devices.md", readFileSync(join(folder, "devices.md"), "utf8"), ""),
        [README]: printDeviceTable("README.md", readFileSync(join(folder, README), "utf8"), "docs/"),
      };
      const stale = Object.entries(pages).filter(([name, text]) => {
        const path = join(folder, name);
        return !existsSync(path) || readFileSync(path, "utf8") !== text;
      });
      if (check && stale.length > 0) {
        const names = stale.map(([name]) => pathOf(name)).join(" and ");
        throw new CommandFailure(`Out of date: ${names}.\nRun npm run docs and commit the result.`);
      }
      for (const [name, text] of stale) writeFileSync(join(folder, name), text);
      const what =
        stale.length === 0 ? "docs/ is up to date." : `Wrote ${stale.map(([name]) => pathOf(name)).join(", ")}.`;
      print(what);
    });
}

const pathOf = (name: string) => (name === README ? "README.md" : `docs/${name}`);

/** The OpenAPI document as a client gets it, from a temporary service on a temporary folder. */
async function askForOpenApi(): Promise<OpenApiDocument> {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-docs-"));
  try {
    // No collectors: their ports may be in use by a service on this machine.
    const ports = { netflow_port: "off", ipfix_port: "off", sflow_port: "off", syslog_port: "off" };
    const flags = { data_dir: dataDir, port: "0", log_level: "silent", ...ports };
    const { settings } = loadSettings({ flags, environment: {}, workingFolder: dataDir }) as LoadedSettings;
    const { startApp } = await import("../app.ts");
    const { createLog } = await import("../lib/log.ts");
    const app = await startApp(settings, createLog({ level: settings.logLevel }));
    try {
      const answer = await fetch(`${app.address}/openapi.json`);
      if (!answer.ok) throw new Error(`/openapi.json answered ${answer.status}`);
      return (await answer.json()) as OpenApiDocument;
    } finally {
      await app.close();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
