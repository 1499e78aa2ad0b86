import { execFile, fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";

// The program as people run it: in separate processes, on temporary data folders.

const root = fileURLToPath(new URL("..", import.meta.url));
export const main = join(root, "src/main.mjs");
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

export const makeFolder = () => mkdtempSync(join(tmpdir(), "tocsin-test-"));

/** Test servers run in parallel: none may take the well-known exporter ports. */
export const COLLECTORS_OFF = {
  TOCSIN_NETFLOW_PORT: "off",
  TOCSIN_IPFIX_PORT: "off",
  TOCSIN_SFLOW_PORT: "off",
  TOCSIN_SYSLOG_PORT: "off",
};

/** Variables of the person who runs the tests must not reach the program under test. */
function environment(extra: Record<string, string> = {}): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("TOCSIN_") && name !== "FORCE_COLOR",
  );
  return { ...Object.fromEntries(inherited), ...COLLECTORS_OFF, ...extra };
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandRequest {
  readonly args: readonly string[];
  readonly env: Record<string, string | undefined>;
  readonly cwd: string;
}

/** Runs a command to its end in a separate process. `input` is its standard input, as a pipe. */
export function tocsinProcess(
  args: readonly string[],
  env: Record<string, string> = {},
  input?: Iterable<string> | AsyncIterable<string>,
): Promise<Finished> {
  return new Promise((resolve) => {
    const options = { cwd: tmpdir(), env: environment(env), maxBuffer: OUTPUT_BYTES_MAX };
    const child = execFile(process.execPath, [main, ...args], options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
    if (input !== undefined) void pipeline(Readable.from(input), child.stdin!);
  });
}

let host: ChildProcess | undefined;
let lastCommand: Promise<unknown> = Promise.resolve();

/**
 * Runs a command to its end, in a folder without a configuration file. Commands share a process that has the program loaded
 * and runs them one at a time; `serve`, which replaces its process, has its own.
 */
export function tocsin(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  if (args[0] === "serve" && !args.includes("--help")) return tocsinProcess(args, env);
  const command = lastCommand.then(() => runInHost({ args, env: environment(env), cwd: tmpdir() }));
  lastCommand = command.catch(() => undefined);
  return command;
}

async function runInHost(request: CommandRequest): Promise<Finished> {
  host ??= startHost();
  const current = host;
  current.send(request);
  const ended = new AbortController();
  try {
    return await Promise.race([
      once(current, "message", ended).then(([outcome]) => outcome as Finished),
      once(current, "exit", ended).then(([code]) => {
        host = undefined;
        throw new Error(`the command host ended with ${code} during tocsin ${request.args.join(" ")}`);
      }),
    ]);
  } finally {
    ended.abort();
  }
}

function startHost(): ChildProcess {
  const child = fork(join(root, "test/command-host.ts"), { execArgv: [], cwd: tmpdir(), env: environment() });
  // It ends with the process that runs the tests and does not keep that process alive.
  child.unref();
  child.channel?.unref();
  return child;
}

export interface Running {
  readonly child: ChildProcess;
  readonly address: string;
  /** Everything written to standard output so far. */
  output(): string;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a server and waits until it listens. */
export async function startTocsin(
  dataDir: string,
  {
    args = [],
    env = {},
    through = [process.execPath, main, "serve"],
  }: { args?: string[]; env?: Record<string, string>; through?: string[] } = {},
): Promise<Running> {
  const [command, ...first] = through;
  const child = spawn(command!, [...first, "--port", "0", "--data-dir", dataDir, ...args], {
    cwd: root,
    env: environment(env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const ended = once(child, "exit");
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const match = /"address":"([^"]+)".*"msg":"listening"/.exec(output);
      if (match) resolve(match[1]!);
    });
    void ended.then(([code]) => reject(new Error(`ended with ${code} before it listened:\n${errors}\n${output}`)));
  });
  return {
    child,
    address,
    output: () => output,
    stop: async (signal = "SIGTERM") => {
      child.kill(signal);
      return ((await ended) as [number | null])[0];
    },
  };
}

export const authorized = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
