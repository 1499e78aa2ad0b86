import { runCommandLine } from "./commands/program.ts";

process.exitCode = await runCommandLine(process.argv.slice(2));
