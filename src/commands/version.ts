import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { print, printJson } from "./terminal.ts";

export function readVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

export function addVersion(program: Command): void {
  program
    .command("version")
    .description("say which version this is, and what it runs on")
    .option("--json", "as one JSON object")
    .action(({ json }: { json?: true }) => {
      const { node, sqlite } = process.versions;
      const facts = { version: readVersion(), node, sqlite, platform: `${process.platform} ${process.arch}` };
      if (json) printJson(facts);
      else print(`tocsin ${facts.version} (Node ${node}, SQLite ${sqlite}, ${facts.platform})`);
    });
}
