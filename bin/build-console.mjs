// Builds the console with the pinned Node if its sources have changed since the last build. Plain JavaScript without
// dependencies: it runs on the Node of the machine.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { withInstallLock } from "./install-lock.mjs";

const ownRoot = fileURLToPath(new URL("..", import.meta.url));
const pinnedNode = join(ownRoot, "node_modules/.bin/node");
const vite = join(ownRoot, "node_modules/vite/bin/vite.js");

/** Part of the hash: raise it when the content of a build changes for other reasons than its sources. */
const FORMAT = 1;
const BUILD_MS_MAX = 180_000;
const OUTPUT_CHARACTERS_MAX = 64 * 1024;
const REASON_CHARACTERS_MAX = 3000;
const LINE_CHARACTERS_MAX = 300;

const MARK = ".built";
/** Read by src/console/console-files.ts. */
const FAILURE = ".failed";
const COMPRESSED_TYPES = new Set([".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"]);
/** A compressed copy that saves less is not worth a second file. */
const SAVED_SHARE_MIN = 0.05;

/**
 * Builds the console of a project folder if needed. Returns undefined, or why it failed. A failure leaves an earlier build in
 * place.
 */
export async function ensureConsole(root = ownRoot) {
  if (!existsSync(join(root, "console/index.html")) || isBuilt(root)) return undefined;
  try {
    return await withInstallLock(join(root, ".installing"), async () => {
      // Another process may have built it while this one waited for the lock.
      return isBuilt(root) ? undefined : await build(root);
    });
  } catch (error) {
    // Whatever it is, such as a full disk, the service can do without the console.
    if (!isNotWritable(error)) return report(root, error.message);
    // Another user may start the service from a folder that belongs to its installer.
    return report(
      root,
      `${join(root, "console")} cannot be written (${error.code}): run node bin/install.mjs as its owner`,
    );
  }
}

function isBuilt(root) {
  const dist = join(root, "console/dist");
  if (!existsSync(join(dist, MARK)) || readFileSync(join(dist, MARK), "utf8") !== hashSources(root)) return false;
  // The sources are those of this build again, so an attempt to build others no longer matters.
  if (existsSync(join(dist, FAILURE))) removeFailure(dist);
  return true;
}

function removeFailure(dist) {
  try {
    rmSync(join(dist, FAILURE));
  } catch (error) {
    if (!isNotWritable(error)) throw error;
  }
}

/** Names and contents of all sources, and the versions of all packages. */
function hashSources(root) {
  const hash = createHash("sha256").update(`${FORMAT}\n`);
  for (const path of [...listFiles(join(root, "console")), join(root, "package-lock.json")]) {
    const content = readFileSync(path);
    hash.update(`${path.slice(root.length)}\n${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/** Without hidden files. */
function listFiles(folder, isTop = true) {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith(".") || (isTop && ["dist", "node_modules"].includes(entry.name))) return [];
    return entry.isDirectory() ? listFiles(path, false) : entry.isFile() ? [path] : [];
  });
}

const entriesOf = (folder) => readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));

async function build(root) {
  const startedAt = performance.now();
  const folder = join(root, "console");
  const dist = join(folder, "dist");
  removeLeftovers(folder);
  const next = join(folder, `.dist-${process.pid}`);
  const hash = hashSources(root);
  try {
    // Fails first if the folder cannot be written.
    mkdirSync(next);
    const failure = await runVite(root, next);
    if (failure !== undefined) {
      mkdirSync(dist, { recursive: true });
      writeFileSync(join(dist, FAILURE), failure);
      giveToOwner(dist, folder);
      return report(root, failure);
    }
    await Promise.all(listFiles(next, false).map(compress));
    writeFileSync(join(next, MARK), hash);
    giveToOwner(next, folder);
    // A service that is running has read its files; one that starts now waits for this process.
    if (existsSync(dist)) renameSync(dist, join(folder, `.dist-${process.pid}-old`));
    renameSync(next, dist);
  } finally {
    removeLeftovers(folder);
  }
  process.stderr.write(`Built the console in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.\n`);
  return undefined;
}

/** Of this process and of any that was killed; the caller holds the lock. */
function removeLeftovers(folder) {
  for (const name of readdirSync(folder)) {
    if (name.startsWith(".dist-")) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Returns why it failed, if it did. */
async function runVite(root, outDir) {
  const args = ["build", join(root, "console"), "--outDir", outDir, "--emptyOutDir", "--logLevel", "error"];
  const child = spawn(pinnedNode, [vite, ...args, "--config", join(root, "console/vite.config.ts")], {
    cwd: root,
    env: { ...process.env, NODE_ENV: "production", NO_COLOR: "1", FORCE_COLOR: undefined },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: BUILD_MS_MAX,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => (output = (output + text).slice(-OUTPUT_CHARACTERS_MAX)));
  }
  try {
    const [code, signal] = await once(child, "close");
    if (code === 0 && existsSync(join(outDir, "index.html"))) return undefined;
    const ending =
      code === 0
        ? "The build made no index.html."
        : signal === null
          ? `The build ended with code ${code}.`
          : `The build was ended by ${signal}: it took longer than ${BUILD_MS_MAX / 1000} s, or memory ran out.`;
    return `${ending}\n${readable(output, root)}`.trim();
  } catch (error) {
    return `The build could not be started: ${readable(error.message, root)}`;
  }
}

/** Anyone who opens the page of the console can read it, so it names no folders of the machine. */
function readable(output, root) {
  const text = stripVTControlCharacters(output).replaceAll("\r", "");
  const roots = [root, realpathSync(root), ownRoot, realpathSync(ownRoot)].map((path) => path.replace(/\/+$/, ""));
  const relative = roots.sort((a, b) => b.length - a.length).reduce((rest, path) => rest.replaceAll(path, "."), text);
  const lines = relative.split("\n").filter((line) => !/^ +at /.test(line));
  return lines.join("\n").trim().slice(0, REASON_CHARACTERS_MAX);
}

async function compress(path) {
  if (!COMPRESSED_TYPES.has(extname(path))) return;
  const plain = readFileSync(path);
  const brotliOptions = {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    },
  };
  const copies = {
    ".br": await promisify(brotliCompress)(plain, brotliOptions),
    ".gz": await promisify(gzip)(plain, { level: constants.Z_BEST_COMPRESSION }),
  };
  for (const [suffix, bytes] of Object.entries(copies)) {
    if (bytes.length <= plain.length * (1 - SAVED_SHARE_MIN)) writeFileSync(path + suffix, bytes);
  }
}

/** What root builds belongs to the owner of the folder, who could not replace it otherwise. */
function giveToOwner(dist, folder) {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(folder);
  for (const path of [dist, ...entriesBelow(dist)]) chownSync(path, uid, gid);
}

function entriesBelow(folder) {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [path, ...entriesBelow(path)] : [path];
  });
}

function isNotWritable(error) {
  return ["EACCES", "EPERM", "EROFS"].includes(error.code);
}

/** One line, because it precedes the output of the service. */
function report(root, failure) {
  const isServed = existsSync(join(root, "console/dist/index.html"));
  const consequence = isServed ? "an earlier build is served" : "the service starts without it";
  const reason = failure.replaceAll(/\s+/g, " ").slice(0, LINE_CHARACTERS_MAX);
  process.stderr.write(`The console was not built; ${consequence}. ${reason}\n`);
  return failure;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2);
  const failure = await ensureConsole(folder === undefined ? ownRoot : `${resolve(folder)}/`);
  if (failure !== undefined) process.exitCode = 1;
}
