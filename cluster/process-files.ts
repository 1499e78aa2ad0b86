import { execFile } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { promisify } from "node:util";

/** Something on the machine is in the way; the message says what to do. */
export class CannotStart extends Error {}

/** What each part's command line contains, so that another process with the number of an old one is not taken for it. */
const COMMANDS = /postgres|opensearch|main\.mjs serve/i;

/** A file with the process id of each part that runs, for `kill $(cat ...)`. */
export class ProcessFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  note(name: string, pid: number | undefined): void {
    if (pid === undefined) rmSync(this.#path(name), { force: true });
    else writeFileSync(this.#path(name), `${pid}\n`);
  }

  clear(): void {
    for (const path of this.#paths()) rmSync(path, { force: true });
  }

  /** Parts that another launcher has started, or one that was killed has left behind. */
  async refuseLeftovers(): Promise<void> {
    const running: string[] = [];
    for (const path of this.#paths()) {
      const pid = readFileSync(path, "utf8").trim();
      if (COMMANDS.test(await commandLine(pid))) running.push(`${basename(path, ".pid")} (process ${pid})`);
      else rmSync(path);
    }
    if (running.length === 0) return;
    throw new CannotStart(
      `Parts of an earlier start still run: ${running.join(", ")}.\n` +
        `Stop the other launcher with Ctrl-C. If it is gone: kill -9 $(cat ${join(this.#folder, "*.pid")})`,
    );
  }

  #paths(): string[] {
    return globSync("*.pid", { cwd: this.#folder }).map((name) => join(this.#folder, name));
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.pid`);
  }
}

const run = promisify(execFile);

async function commandLine(pid: string): Promise<string> {
  try {
    return (await run("ps", ["-o", "args=", "-p", pid])).stdout;
  } catch {
    // ps fails if there is no such process.
    return "";
  }
}

export async function refuseTakenPorts(ports: readonly number[]): Promise<void> {
  const taken: number[] = [];
  for (const port of ports) {
    const probe = createServer().listen(port, "127.0.0.1");
    try {
      await once(probe, "listening");
    } catch {
      taken.push(port);
      continue;
    }
    await once(probe.close(), "close");
  }
  if (taken.length === 0) return;
  throw new CannotStart(
    `Another program listens on ${taken.join(", ")} of 127.0.0.1. Choose other ports with --ports.`,
  );
}
