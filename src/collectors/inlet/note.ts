import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";

// How far a followed file is stored: written down before each batch, so that after a crash the batch that was under way is
// read again as the very same batch, which the store knows by its token.

export interface FileNote {
  readonly path: string;
  /** A name of ours for this file: after a truncation, or where an inode is used again, it is another one. */
  readonly file: string;
  readonly device: number;
  readonly inode: number;
  /** How the file begins: by it a file is known that has another name now. */
  readonly head: { readonly bytes: number; readonly hash: string };
  /** All before it is stored. */
  readonly offset: number;
  /** What is on its way from there: up to where, and when it was read. */
  readonly pending: { readonly to: number; readonly atMs: number } | null;
}

/** The note of this file; undefined where there is none that can be used, which is told where there should have been one. */
export async function readNote(
  notePath: string,
  path: string,
  tell: (message: string) => void,
): Promise<FileNote | undefined> {
  let text: string;
  try {
    text = await readFile(notePath, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const note = noteIn(text);
  if (!note) {
    tell(`${notePath} is damaged: how far ${path} was read is not known any more, and it is read from its beginning`);
    return undefined;
  }
  return note.path === path ? note : undefined;
}

function noteIn(text: string): FileNote | undefined {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isNote(found) ? found : undefined;
}

function isNote(found: unknown): found is FileNote {
  const { path, file, device, inode, head, offset, pending } = (found ?? {}) as Partial<FileNote>;
  return (
    [path, file, head?.hash].every((text) => typeof text === "string") &&
    [device, inode, head?.bytes, offset].every((number) => Number.isSafeInteger(number)) &&
    (pending === null || (Number.isSafeInteger(pending?.to) && typeof pending?.atMs === "number"))
  );
}

/** Resolves once the note survives a crash; until then the one before is there. */
export async function writeNote(notePath: string, note: FileNote): Promise<void> {
  const next = `${notePath}.next`;
  await mkdir(dirname(notePath), { recursive: true });
  const file = await open(next, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(note));
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
