import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";

// Checkpoint of the file tailer, written before each batch. After a crash the batch in flight is read again as exactly the
// same batch, which the store recognises by its token.

export interface TailerCheckpoint {
  readonly path: string;
  /** Generated name of this file; a truncated file, or one that reuses an inode, gets a new one. */
  readonly file: string;
  readonly device: number;
  readonly inode: number;
  /** Hash of the file's head, which identifies the file after it was renamed. */
  readonly head: { readonly bytes: number; readonly hash: string };
  /** Everything before this offset is stored. */
  readonly offset: number;
  /** The batch in flight: its end offset, and the time at which it was read. */
  readonly pending: { readonly to: number; readonly atMs: number } | null;
}

/** Reads the checkpoint of a file; undefined if there is none. Warns if it is damaged. */
export async function readCheckpoint(
  checkpointPath: string,
  path: string,
  warn: (message: string) => void,
): Promise<TailerCheckpoint | undefined> {
  let text: string;
  try {
    text = await readFile(checkpointPath, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const checkpoint = parseCheckpoint(text);
  if (!checkpoint) {
    warn(`the checkpoint ${checkpointPath} is damaged: ${path} is read again from its start`);
    return undefined;
  }
  return checkpoint.path === path ? checkpoint : undefined;
}

function parseCheckpoint(text: string): TailerCheckpoint | undefined {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isCheckpoint(found) ? found : undefined;
}

function isCheckpoint(found: unknown): found is TailerCheckpoint {
  const { path, file, device, inode, head, offset, pending } = (found ?? {}) as Partial<TailerCheckpoint>;
  return (
    [path, file, head?.hash].every((text) => typeof text === "string") &&
    [device, inode, head?.bytes, offset].every((number) => Number.isSafeInteger(number)) &&
    (pending === null || (Number.isSafeInteger(pending?.to) && typeof pending?.atMs === "number"))
  );
}

/** Replaces the checkpoint atomically; resolves once the new one would survive a crash. */
export async function writeCheckpoint(notePath: string, checkpoint: TailerCheckpoint): Promise<void> {
  const next = `${notePath}.next`;
  await mkdir(dirname(notePath), { recursive: true });
  const file = await open(next, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(checkpoint));
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(next, notePath);
  const folder = await open(dirname(notePath), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
