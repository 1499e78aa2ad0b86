import { closeSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { serveThread } from "../lib/thread.ts";
import type { ExportFormat } from "../model/export.ts";
import type { ExportColumn } from "./export-columns.ts";
import { FORMATS } from "./export-formats.ts";

// The thread that formats and writes rows, so that an export never blocks the thread that serves requests.

export interface ExportWriterTask {
  readonly path: string;
  readonly format: ExportFormat;
  readonly named: boolean;
  readonly columns: readonly ExportColumn[];
}

export interface WriteResult {
  readonly rowCount: number;
  /** An upper bound of the row size, not the exact maximum. */
  readonly rowBytesMax: number;
  readonly sizeBytes: number;
}

const WRITE_CHARACTERS = 256 * 1024;
/** Per UTF-16 code unit. */
const UTF8_BYTES_MAX = 3;
const DISK_CHECK_BYTES = 16 * 1024 * 1024;
/** An export fails before the disk is full, so that incoming events can still be stored. */
const DISK_RESERVE_BYTES_MAX = 256 * 1024 * 1024;
const DISK_RESERVE_SHARE = 0.05;

const { path, format, ...columns } = workerData as ExportWriterTask;
const layout = FORMATS[format].layout(columns);
const file = openSync(path, "w", 0o600);
const buffer = Buffer.allocUnsafe(2 * WRITE_CHARACTERS * UTF8_BYTES_MAX);
let rowCount = 0;
let rowCharactersMax = 0;
let sizeBytes = 0;
let checkDiskAt = 0;

function write(text: string): void {
  // A row larger than the buffer is rare and gets its own buffer.
  const bytes = text.length * UTF8_BYTES_MAX <= buffer.length ? buffer : Buffer.allocUnsafe(Buffer.byteLength(text));
  const length = bytes.write(text);
  let written = 0;
  while (written < length) written += writeSync(file, bytes, written, length - written);
  sizeBytes += length;
  if (sizeBytes < checkDiskAt) return;
  checkDiskAt = sizeBytes + DISK_CHECK_BYTES;
  requireDiskReserve();
}

function requireDiskReserve(): void {
  const { bavail, blocks, bsize } = statfsSync(path);
  if (bavail * bsize >= Math.min(DISK_RESERVE_BYTES_MAX, blocks * bsize * DISK_RESERVE_SHARE)) return;
  throw Object.assign(new Error("free disk space is below the reserve"), { code: "ENOSPC" });
}

write(layout.header);

const api = {
  /** Appends events, given as JSON text. */
  add(events: readonly string[]): void {
    let text = "";
    for (const event of events) {
      if (rowCount++ > 0) text += layout.separator;
      const row = layout.row(event);
      rowCharactersMax = Math.max(rowCharactersMax, row.length);
      text += row;
      if (text.length > WRITE_CHARACTERS) {
        write(text);
        text = "";
      }
    }
    write(text);
  },

  /** Completes the file and syncs it to disk. */
  end(): WriteResult {
    write(layout.footer);
    fsyncSync(file);
    closeSync(file);
    return { rowCount, rowBytesMax: rowCharactersMax * UTF8_BYTES_MAX, sizeBytes };
  },
};

export type ExportWriterApi = typeof api;

serveThread(api);
