// A lock for processes that install into the same folder: `npm ci` empties node_modules first, so two at once would break
// each other. For the same reason the lock file is beside node_modules, not in it. Runs on any Node.
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const HEARTBEAT_MS = 1_000;
/** A holder without a heartbeat for this long is gone, even if its process id is in use again. */
const STALE_AFTER_MS = 60_000;
const POLL_MS = 100;

/** Runs `work` while holding the lock at `path`; waits for another process that holds it. */
export async function withInstallLock(path, work) {
  const release = await acquire(path);
  try {
    return await work();
  } finally {
    release();
  }
}

async function acquire(path) {
  const holder = JSON.stringify({ pid: process.pid, host: hostname(), token: randomUUID() });
  let isWaitAnnounced = false;
  while (!tryCreate(path, holder)) {
    if (removeIfStale(path)) continue;
    if (!isWaitAnnounced) process.stderr.write("Another process is installing in this folder; waiting for it...\n");
    isWaitAnnounced = true;
    await sleep(POLL_MS);
  }
  const heartbeat = setInterval(() => touch(path), HEARTBEAT_MS);
  return () => {
    clearInterval(heartbeat);
    if (read(path) === holder) rmSync(path, { force: true });
  };
}

function tryCreate(path, holder) {
  try {
    writeFileSync(path, holder, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** A second lock guards the removal: otherwise two waiters could both find the lock stale, and the slower one would remove the new lock. */
function removeIfStale(path) {
  if (!isStale(path)) return false;
  const guard = `${path}.cleanup`;
  try {
    mkdirSync(guard);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    if (ageMs(guard) > STALE_AFTER_MS) rmdirSync(guard);
    return false;
  }
  try {
    if (isStale(path)) rmSync(path, { force: true });
    return true;
  } finally {
    rmdirSync(guard);
  }
}

function isStale(path) {
  const age = ageMs(path);
  if (age > STALE_AFTER_MS) return true;
  // Two heartbeats: a lock that was just created may not have its content yet.
  if (age < 2 * HEARTBEAT_MS) return false;
  try {
    const { pid, host } = JSON.parse(read(path) ?? "");
    return host === hostname() && !isAlive(pid);
  } catch {
    return true;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function ageMs(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? 0 : Date.now() - stats.mtimeMs;
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

function touch(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (error) {
    // Somebody removed the lock by hand. The installation continues.
    if (error.code !== "ENOENT") throw error;
  }
}
