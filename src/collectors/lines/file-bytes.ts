import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { TailerCheckpoint } from "./tailer-checkpoint.ts";

// Bytes of an open file: its lines, and its head, which identifies it.

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

/** Lines with their line ends, so that the lengths add up. */
export function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const lineFeed = bytes.indexOf(LINE_FEED, start);
    const end = lineFeed < 0 ? bytes.length : lineFeed + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

export async function hashHead(handle: FileHandle, bytes: number): Promise<string> {
  return createHash("sha256")
    .update(await readBytes(handle, 0, bytes))
    .digest("hex");
}

export async function hasHead(handle: FileHandle, head: TailerCheckpoint["head"]): Promise<boolean> {
  return head.bytes === 0 || (await hashHead(handle, head.bytes)) === head.hash;
}
