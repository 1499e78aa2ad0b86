import { closeSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { serveThread } from "../lib/thread.ts";
import type { ExportFormat } from "../model/export.ts";
import type { Column } from "./columns.ts";
import { FORMATS } from "./format.ts";

// The thread that makes rows and writes them, so that an export never holds up the thread that serves requests.

export interface WriterTask {
  readonly path: string;
  readonly format: ExportFormat;
  readonly named: boolean;
  readonly columns: readonly Column[];
}

export interface Written {
  readonly rowCount: number;
  /** No row takes more; a bound, not the exact size. */
  readonly rowBytesMax: number;
  readonly sizeBytes: number;
}

const WRITE_CHARACTERS = 256 * 1024;
/** Of one UTF-16 unit. */
const UTF8_BYTES_MAX = 3;
const ROOM_CHECK_BYTES = 16 * 1024 * 1024;
/** An export stops while there is still room for the events that keep coming in. */
const ROOM_KEPT_BYTES_MAX = 256 * 1024 * 1024;
const ROOM_KEPT_SHARE = 0.05;

const { path, format, ...columns } = workerData as WriterTask;
const shape = FORMATS[format].shape(columns);
const file = openSync(path, "w", 0o600);
const buffer = Buffer.allocUnsafe(2 * WRITE_CHARACTERS * UTF8_BYTES_MAX);
let rowCount = 0;
let rowCharactersMax = 0;
let sizeBytes = 0;
let checkRoomAt = 0;

function write(text: string): void {
  // A row larger than the buffer is rare, and then has one of its own.
  const bytes = text.length * UTF8_BYTES_MAX <= buffer.length ? buffer : Buffer.allocUnsafe(Buffer.byteLength(text));
  const length = bytes.write(text);
  let written = 0;
  while (written < length) written += writeSync(file, bytes, written, length - written);
  sizeBytes += length;
  if (sizeBytes < checkRoomAt) return;
  checkRoomAt = sizeBytes + ROOM_CHECK_BYTES;
  refuseToFillDisk();
}

function refuseToFillDisk(): void {
  const { bavail, blocks, bsize } = statfsSync(path);
  if (bavail * bsize >= Math.min(ROOM_KEPT_BYTES_MAX, blocks * bsize * ROOM_KEPT_SHARE)) return;
  throw Object.assign(new Error("too little room left on the disk"), { code: "ENOSPC" });
}

write(shape.head);

const api = {
  /** Events as their JSON texts. */
  add(events: readonly string[]): void {
    let text = "";
    for (const event of events) {
      if (rowCount++ > 0) text += shape.separator;
      const row = shape.row(event);
      rowCharactersMax = Math.max(rowCharactersMax, row.length);
      text += row;
      if (text.length > WRITE_CHARACTERS) {
        write(text);
        text = "";
      }
    }
    write(text);
  },

  /** The file is whole and on the disk when it returns. */
  end(): Written {
    write(shape.tail);
    fsyncSync(file);
    closeSync(file);
    return { rowCount, rowBytesMax: rowCharactersMax * UTF8_BYTES_MAX, sizeBytes };
  },
};

export type WriterApi = typeof api;

serveThread(api);
