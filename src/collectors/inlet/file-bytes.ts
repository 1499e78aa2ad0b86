import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { FileNote } from "./note.ts";

// Bytes of a file that is open: its lines, and its beginning, by which it is known.

const LINE_FEED = 0x0a;

export async function readBytes(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
  let read = 0;
  while (read < bytes.length) {
    const { bytesRead } = await handle.read(bytes, read, bytes.length - read, from + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return bytes.subarray(0, read);
}

/** Each with its end, so that their lengths add up. */
export function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const lineFeed = bytes.indexOf(LINE_FEED, start);
    const end = lineFeed < 0 ? bytes.length : lineFeed + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

export async function hashOf(handle: FileHandle, bytes: number): Promise<string> {
  return createHash("sha256")
    .update(await readBytes(handle, 0, bytes))
    .digest("hex");
}

export async function beginsAs(handle: FileHandle, head: FileNote["head"]): Promise<boolean> {
  return head.bytes === 0 || (await hashOf(handle, head.bytes)) === head.hash;
}
