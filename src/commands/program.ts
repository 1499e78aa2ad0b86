import { readVersion } from "../lib/version.ts";
import { Command, CommanderError } from "commander";
import { addCheck } from "./check.ts";
import { addDemo } from "./demo.ts";
import { addDocs } from "./docs.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE } from "./failure.ts";
import { addKeys } from "./keys.ts";
import { addNotify } from "./notify.ts";
import { addParse } from "./parse.ts";
import { addRebuild } from "./rebuild.ts";
import { addRules } from "./rules.ts";
import { addServe } from "./serve.ts";
import { addStorage } from "./storage.ts";
import { addTestEvent } from "./test-event.ts";
import { addVersion } from "./version.ts";

/** Runs one command and gives its exit code. A command imports what is heavy when it runs, so that --help is quick. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  // What a command makes in the data folder is for the user that runs it, and nobody else on the machine.
  process.umask(0o077);
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

/** A reader that has seen enough (`| head`) is no failure; output that is lost otherwise is one. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") return;
  process.stderr.write(`Standard output takes no more: ${error.message}\n`);
  process.exitCode = EXIT_FAILED;
}

function buildProgram(): Command {
  const program = new Command("tocsin")
    .description("Security monitoring for one site: events, rules and alerts behind one REST API.")
    .version(readVersion(), "-V, --version", "say which version this is")
    .exitOverride()
    .showHelpAfterError("Add --help to see what there is.")
    .addHelpText(
      "after",
      `
Examples:
  tocsin serve --port 8080                          run the service
  tocsin demo                                       fill it with a week of events
  tocsin keys create --name me --scopes all         make a key
  tocsin rules import sigma/rules                   make rules out of Sigma's
  tocsin parse gateway.log                          see what a device's lines become
  tocsin test-event syslog                          see whether events come through
  tocsin check                                      see what the configuration says

Exit codes: 0 done, ${EXIT_FAILED} could not be done, ${EXIT_WRONG_USE} the command line or the configuration is wrong.`,
    );
  // Sub-commands take over what is set above, so they are added last.
  const work = [addServe, addKeys, addRules, addNotify, addCheck, addDemo, addParse, addTestEvent];
  for (const add of [...work, addStorage, addRebuild, addDocs, addVersion]) add(program);
  return program;
}
