import { open, readdir, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { ThreadError } from "../lib/thread.ts";
import { DAY_MS } from "../lib/time.ts";
import { subjectOf, type ExportFormat, type ExportJob } from "../model/export.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import { FORMATS } from "./export-formats.ts";

// What is true of exports whoever runs them: limits, their files, downloads.

export const EXPORTS_QUEUED_MAX = 20;
/** Pending and running exports of one key, so that it cannot fill the queue. */
export const EXPORTS_UNFINISHED_PER_KEY_MAX = 5;
/** All stored exports of one key, so that it cannot fill the disk with many small files. */
export const EXPORTS_KEPT_PER_KEY_MAX = 100;
const EXPORT_LIFETIME_MS = DAY_MS;
const QUEUE_FULL_RETRY_SECONDS = 30;

export interface ExportRequest {
  readonly format: ExportFormat;
  readonly question: ExportJob["question"];
  /** The id of the requesting key. */
  readonly owner: string;
}

/** The key has reached its limit of exports. */
export class TooManyExports extends Error {
  readonly retryAfterSeconds: number;
  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.name = "TooManyExports";
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The content of a completed export. The caller must read the stream to its end or destroy it. */
export interface Download {
  readonly stream: Readable;
  readonly sizeBytes: number;
  readonly mediaType: string;
  readonly fileName: string;
}

/** Exports as clients see them. */
export interface Exports {
  /** Throws TooManyExports at the limit of the owner, and StoreUnavailable when the queue is full. */
  create(request: ExportRequest): Promise<ExportJob>;
  get(id: string): ExportJob | undefined | Promise<ExportJob | undefined>;
  /** The exports of a key that have not expired, newest first. */
  list(owner: string): readonly ExportJob[] | Promise<readonly ExportJob[]>;
  /** Stops an export and removes it with its file; false if it does not exist. A download in flight continues. */
  cancel(id: string): Promise<boolean>;
  /** Undefined unless the export is completed. */
  openDownload(id: string): Promise<Download | undefined>;
}

/** Refuses one more export of the owner beside these. */
export function requireRoom(jobs: readonly ExportJob[], owner: string, now: number): void {
  const own = jobs.filter((job) => job.owner === owner && job.expiresAt > now);
  const unfinished = own.filter(({ status }) => status === "pending" || status === "running");
  if (unfinished.length >= EXPORTS_UNFINISHED_PER_KEY_MAX) {
    const message = `the key has ${EXPORTS_UNFINISHED_PER_KEY_MAX} unfinished exports; wait until one of them completes`;
    throw new TooManyExports(message, QUEUE_FULL_RETRY_SECONDS);
  }
  if (own.length >= EXPORTS_KEPT_PER_KEY_MAX) {
    const message = `the key has ${EXPORTS_KEPT_PER_KEY_MAX} exports, the maximum; delete one first`;
    throw new TooManyExports(message, Math.ceil((own[0]!.expiresAt - now) / 1000));
  }
  if (jobs.filter(({ status }) => status === "pending").length >= EXPORTS_QUEUED_MAX) {
    const message = `${EXPORTS_QUEUED_MAX} exports are queued already`;
    throw new StoreUnavailable("queue_full", message, QUEUE_FULL_RETRY_SECONDS);
  }
}

export function newExportJob(id: string, { format, question, owner }: ExportRequest, createdAt: number): ExportJob {
  return {
    id,
    status: "pending",
    format,
    question,
    rowCount: null,
    sizeBytes: null,
    createdAt,
    completedAt: null,
    expiresAt: createdAt + EXPORT_LIFETIME_MS,
    error: null,
    owner,
  };
}

/** The exports of a key that have not expired, newest first. */
export function exportsOf(owner: string, jobs: Iterable<ExportJob>, now: number): ExportJob[] {
  return [...jobs].filter((job) => job.owner === owner && job.expiresAt > now).sort((a, b) => (a.id < b.id ? 1 : -1));
}

export function exportPath(folder: string, { id, format, file }: ExportJob): string {
  return join(folder, file ?? `${id}.${FORMATS[format].extension}`);
}

/** Undefined if the file is gone or has another size than the export. */
export async function openExportFile(folder: string, job: ExportJob): Promise<Download | undefined> {
  const { mediaType, extension } = FORMATS[job.format];
  const file = await openIfPresent(exportPath(folder, job));
  const size = (await file?.stat())?.size;
  if (!file || size === undefined || size !== job.sizeBytes) {
    await file?.close();
    return undefined;
  }
  return {
    // An explicit end makes the stream finish with the last byte. Otherwise it would read once more, and a client that has
    // everything by then could disconnect before the response ends.
    stream: file.createReadStream(size > 0 ? { end: size - 1 } : {}),
    sizeBytes: size,
    mediaType,
    fileName: `${subjectOf(job)}-${job.id}.${extension}`,
  };
}

export async function removeExportFiles(folder: string, isUnwanted: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) if (isUnwanted(name)) await rm(join(folder, name), { force: true });
}

/** Undefined if the file does not exist: the export may have been cancelled a moment ago. */
async function openIfPresent(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The code of a system error, including one from another thread. */
export function codeOf(error: unknown): string {
  if (error instanceof ThreadError) return String(error.details.code);
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
