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

/** The note of this file; undefined where there is none that can be used. */
export async function readNote(notePath: string, path: string): Promise<FileNote | undefined> {
  let text: string;
  try {
    text = await readFile(notePath, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const note = JSON.parse(text) as FileNote;
  return note.path === path ? note : undefined;
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
