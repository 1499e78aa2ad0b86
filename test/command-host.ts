import { runCommandLine } from "../src/commands/program.ts";
import type { CommandRequest, Finished } from "./tocsin.ts";

// A process that runs one command after the other. Loading the program takes half a second of CPU time, which hundreds of
// commands would otherwise each spend. test/tocsin.ts starts it and talks to it.

async function run({ args, env, cwd }: CommandRequest): Promise<Finished> {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.exitCode = undefined;
  const listeners = process.stdout.listeners("error");
  const stdout = capture(process.stdout);
  const stderr = capture(process.stderr);
  try {
    const code = await runCommandLine(args);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    stdout.restore();
    stderr.restore();
    for (const listener of process.stdout.listeners("error"))
      if (!listeners.includes(listener)) process.stdout.off("error", listener as () => void);
  }
}

/** Collects everything that is written to the stream until it is restored. */
function capture(stream: NodeJS.WriteStream): { text(): string; restore(): void } {
  const write = stream.write;
  const chunks: Buffer[] = [];
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(Buffer.from(chunk as string));
    const done = rest.find((item) => typeof item === "function") as (() => void) | undefined;
    if (done) process.nextTick(done);
    return true;
  };
  return {
    text: () => Buffer.concat(chunks).toString("utf8"),
    restore: () => {
      stream.write = write;
    },
  };
}

process.on("message", (request: CommandRequest) => void run(request).then((outcome) => process.send!(outcome)));
process.on("disconnect", () => process.exit());
