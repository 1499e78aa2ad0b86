import type { Command } from "commander";
import { readVersion } from "../lib/version.ts";
import { print, printJson } from "./terminal.ts";

export function addVersion(program: Command): void {
  program
    .command("version")
    .description("print the versions of tocsin, Node and SQLite")
    .option("--json", "as one JSON object")
    .action(({ json }: { json?: true }) => {
      const { node, sqlite } = process.versions;
      const facts = { version: readVersion(), node, sqlite, platform: `${process.platform} ${process.arch}` };
      if (json) printJson(facts);
      else print(`tocsin ${facts.version} (Node ${node}, SQLite ${sqlite}, ${facts.platform})`);
    });
}
