import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Commands of other ecosystems, each with a time limit. A missing toolchain or registry skips the step.

const COMMAND_MS_MAX = 300_000;
const OUTPUT_CHARACTERS_MAX = 4000;

/** The machine lacks something: a toolchain, or access to its registry. */
export class Skipped extends Error {}

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  /** The tool that fetches from a registry; the step is skipped if the registry cannot be reached. */
  readonly fetchesWith?: string;
  readonly onLine?: (line: string) => void;
}

interface Surroundings {
  readonly cwd: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** Messages of npm, pip and Go when they cannot reach their registry. */
const UNREACHABLE =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|dial tcp|i\/o timeout|no such host|network is unreachable|proxyconnect|module lookup disabled|NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|name resolution/i;

/** Runs a command to its end and returns its output. */
export async function runCommand({
  command,
  args,
  fetchesWith,
  onLine,
  cwd,
  variables,
}: Command & Surroundings): Promise<string> {
  const child = spawn(command, args, {
    cwd,
    env: environment(cwd, variables),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: COMMAND_MS_MAX,
    killSignal: "SIGKILL",
  });
  let output = "";
  let fault: unknown;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    output += `${line}\n`;
    try {
      onLine?.(line);
    } catch (error) {
      fault ??= error;
      child.kill("SIGKILL");
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  let status: number | null;
  try {
    [status] = (await once(child, "close")) as [number | null];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw new Skipped(`there is no ${command} on this machine`);
    throw error;
  }
  if (fault !== undefined) throw fault;
  if (status === 0) return output;
  if (fetchesWith !== undefined && UNREACHABLE.test(output)) {
    throw new Skipped(`${fetchesWith} cannot reach its registry: ${UNREACHABLE.exec(output)![0]}`);
  }
  const how = status === null ? "was killed; it may take five minutes" : `ended with ${status}`;
  throw new Error(`${[command, ...args].join(" ")} ${how}\n${output.slice(-OUTPUT_CHARACTERS_MAX)}`);
}

/**
 * The caller's environment without what npm adds for scripts, and with a temporary home for caches if theirs is not
 * writable.
 */
function environment(cwd: string, variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(package|lifecycle)_|npm_config_(local_)?prefix$|TOCSIN_|NODE_COMPILE_CACHE$)/.test(name),
  );
  return { ...Object.fromEntries(inherited), ...homeIn(cwd), ...variables };
}

function homeIn(cwd: string): Record<string, string> {
  try {
    if (!process.env["HOME"]) throw new Error("there is none");
    accessSync(homedir(), constants.W_OK);
    return {};
  } catch {
    const home = join(cwd, "home");
    mkdirSync(home, { recursive: true });
    // Go makes its module cache read-only, so that it could not be removed afterwards. npm passes its own cache path to
    // scripts.
    const goFlags = `${process.env["GOFLAGS"] ?? ""} -modcacherw`.trim();
    return { HOME: home, GOFLAGS: goFlags, npm_config_cache: join(home, ".npm") };
  }
}
