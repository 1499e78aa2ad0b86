import { execFileSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ServerProcess } from "./server-process.ts";

// A disk that a test can fill; removed when the test is over.

export interface SmallDisk {
  readonly dataDir: string;
  readonly shellBefore?: string;
  fill(server: ServerProcess): Promise<void>;
  makeRoom(server: ServerProcess): Promise<void>;
}

const BALLAST_BYTES = 80 * 1024 * 1024;
const ROOM_BYTES = 16 * 1024 * 1024;

/** A separate file system, if this process may mount one. */
async function mountSmallDisk(folder: string): Promise<SmallDisk | undefined> {
  const mountPoint = join(folder, "small");
  await mkdir(mountPoint, { recursive: true });
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${BALLAST_BYTES + ROOM_BYTES}`, "tmpfs", mountPoint], {
      stdio: "ignore",
    });
  } catch {
    return undefined;
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", mountPoint]));
  const ballast = join(mountPoint, "ballast");
  return {
    dataDir: join(mountPoint, "data"),
    fill: () => writeFile(ballast, Buffer.alloc(BALLAST_BYTES, 1)),
    makeRoom: () => rm(ballast),
  };
}

/** Otherwise a limit on the size of each file, which the server sees in much the same way. */
function limitFileSize(folder: string): SmallDisk | undefined {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  const setLimit = async (server: ServerProcess, bytes: string) =>
    void execFileSync("prlimit", [`--pid=${server.pid}`, `--fsize=${bytes}:unlimited`]);
  return {
    dataDir: join(folder, "limited"),
    shellBefore: "trap '' XFSZ",
    fill: (server) => setLimit(server, String(4 * 1024 * 1024)),
    makeRoom: (server) => setLimit(server, "unlimited"),
  };
}

/** Undefined if this process may do neither. */
export async function makeSmallDisk(folder: string): Promise<SmallDisk | undefined> {
  return (await mountSmallDisk(folder)) ?? limitFileSize(folder);
}
