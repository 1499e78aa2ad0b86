import { enableExactJson } from "../lib/exact-json.ts";
import { readVersion } from "../lib/version.ts";
import { Command, CommanderError } from "commander";
import { addCheck } from "./check-command.ts";
import { addDemo } from "./demo-command.ts";
import { addDocs } from "./docs-command.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { addFormats } from "./formats-command.ts";
import { addKeys } from "./keys-command.ts";
import { addMigrate } from "./migrate-command.ts";
import { addNotify } from "./notify-command.ts";
import { addParse } from "./parse-command.ts";
import { addRebuild } from "./rebuild-command.ts";
import { addRules } from "./rules-command.ts";
import { addServe } from "./serve-command.ts";
import { addStorage } from "./storage-command.ts";
import { addTestEvent } from "./test-event-command.ts";
import { addVersion } from "./version-command.ts";

/** Runs one command and returns its exit code. Commands import heavy modules when they run, so that --help is fast. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // Files that a command creates in the data folder are private to its user.
  process.umask(0o077);
  enableExactJson();
  process.stdout.on("error", onOutputError);
  try {
    await buildProgram().parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_WRONG_USE;
    const expected = error instanceof CommandFailure;
    process.stderr.write(`${expected ? error.message : ((error as Error)?.stack ?? String(error))}\n`);
    return expected ? error.exitCode : EXIT_FAILED;
  }
}

/** A closed pipe (`| head`) is not a failure; any other loss of output is. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") return;
  process.stderr.write(`Cannot write to standard output: ${error.message}\n`);
  process.exitCode = EXIT_FAILED;
}

function buildProgram(): Command {
  const program = new Command("tocsin")
    .description("Security monitoring for one site: events, rules and alerts behind one REST API.")
    .version(readVersion(), "-V, --version", "print the version")
    .exitOverride()
    .showHelpAfterError("Use --help for a list of commands and options.")
    .addHelpText(
      "after",
      `
Examples:
  tocsin serve --port 8080                          run the service
  tocsin demo                                       fill it with a week of events
  tocsin keys create --name me --scopes all         create a key
  tocsin rules import sigma/rules                   import Sigma rules
  tocsin parse gateway.log                          parse the lines of a device
  tocsin parse --format acme.yaml sample.log        try a format of your own
  tocsin test-event syslog                          send a test event end to end
  tocsin check                                      check the configuration

Exit codes: 0 done, ${EXIT_FAILED} could not be done, ${EXIT_WRONG_USE} the command line or the configuration is wrong.`,
    );
  // Added last: subcommands inherit the settings above.
  const work = [addServe, addKeys, addRules, addNotify, addCheck, addDemo, addParse, addFormats, addTestEvent];
  for (const add of [...work, addStorage, addRebuild, addMigrate, addDocs, addVersion]) add(program);
  return program;
}
