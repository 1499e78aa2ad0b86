// Installs the dependencies if any is missing, and builds the console if it has changed. Plain JavaScript without dependencies: it runs on the Node of the machine,
// before the pinned one is installed.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ensureConsole } from "./build-console.mjs";
import { withInstallLock } from "./install-lock.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const pinnedNode = `${root}node_modules/.bin/node`;
const mark = `${root}node_modules/.tocsin-installed`;

const wanted = () =>
  createHash("sha256")
    .update(readFileSync(`${root}package-lock.json`))
    .digest("hex");

export function isInstalled() {
  return existsSync(pinnedNode) && existsSync(mark) && readFileSync(mark, "utf8") === wanted();
}

export async function ensureInstalled() {
  if (isInstalled()) return;
  await withInstallLock(`${root}.installing`, async () => {
    // Another process may have installed while this one waited for the lock.
    if (!isInstalled()) await install();
  });
}

async function install() {
  process.stderr.write("Installing dependencies (once; takes about a minute)...\n");
  // Dev dependencies are included regardless of NODE_ENV: `npm test` must work in the same folder.
  const npm = spawn(
    "npm",
    ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"],
    // Standard output is reserved for the result of the command, which a script may read.
    { cwd: root, stdio: ["ignore", 2, 2], shell: process.platform === "win32" },
  );
  let status;
  try {
    [status] = await once(npm, "exit");
  } catch (error) {
    throw new Error(`npm could not be started: ${error.message}. Install npm 11, then try again.`, { cause: error });
  }
  if (status !== 0) throw new Error("npm ci failed; see the lines above. Fix the cause, then try again.");
  if (!existsSync(pinnedNode)) {
    throw new Error(
      `No pinned Node 26 for ${process.platform} ${process.arch}. Install Node 26 and run: node src/main.mjs serve`,
    );
  }
  writeFileSync(mark, wanted());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await ensureInstalled();
    // Without the console the service still starts; its page says why.
    await ensureConsole();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
