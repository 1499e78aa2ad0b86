import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { makeFolder } from "../lib/folder.ts";
import { greatestId, idMaker } from "../lib/id.ts";
import { ThreadError } from "../lib/thread.ts";
import { DAY_MS } from "../lib/time.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { subjectOf, type ExportFormat, type ExportJob, type ParquetTask } from "../model/export.ts";
import type { AlertFilter } from "../store/ports/alert-store.ts";
import { QueryRefused, StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { alertRows } from "./alert-rows.ts";
import { columnsOf } from "./export-columns.ts";
import { FORMATS } from "./export-formats.ts";
import { writeExport } from "./export-writer.ts";

// Exports are queued, run one at a time into a file each, and can be downloaded for a day.

export const EXPORTS_QUEUED_MAX = 20;
/** Pending and running exports of one key, so that it cannot fill the queue. */
export const EXPORTS_UNFINISHED_PER_KEY_MAX = 5;
/** All stored exports of one key, so that it cannot fill the disk with many small files. */
export const EXPORTS_KEPT_PER_KEY_MAX = 100;
const EXPORT_LIFETIME_MS = DAY_MS;
const SWEEP_MS = 60_000;
const QUEUE_FULL_RETRY_SECONDS = 30;
const FILE_LOST = "the file of the export is gone or damaged; create the export again";

interface ExportRequest {
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
interface Download {
  readonly stream: Readable;
  readonly sizeBytes: number;
  readonly mediaType: string;
  readonly fileName: string;
}

export interface ExportRunner {
  /** Throws TooManyExports at the limit of the owner, and StoreUnavailable when the queue is full. */
  create(request: ExportRequest): Promise<ExportJob>;
  get(id: string): ExportJob | undefined;
  /** The exports of a key that have not expired, newest first. */
  list(owner: string): readonly ExportJob[];
  /** Stops an export and removes it with its file; false if it does not exist. A download in flight continues. */
  cancel(id: string): Promise<boolean>;
  /** Undefined unless the export is completed. */
  openDownload(id: string): Promise<Download | undefined>;
  /** Stops the running export. It restarts when the runner is opened again. */
  close(): Promise<void>;
}

export interface ExportRunnerOptions {
  readonly store: Pick<Store, "events" | "alerts" | "exports">;
  /** Holds the files of the exports. */
  readonly folder: string;
  /** Rejects with the signal's reason when it aborts. */
  readonly convertToParquet: (task: ParquetTask, signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly registry: Registry;
  readonly now?: () => number;
  /** Resolves to false while the clock is not trusted and files must not expire. */
  readonly mayExpire?: () => Promise<boolean>;
}

export async function openExportRunner(options: ExportRunnerOptions): Promise<ExportRunner> {
  makeFolder(options.folder);
  const stored = await options.store.exports.list();
  const runner = new QueuedExportRunner(options, greatestId(stored.map(({ id }) => id)));
  await runner.recover(stored);
  return runner;
}

class QueuedExportRunner implements ExportRunner {
  readonly #store: ExportRunnerOptions["store"];
  readonly #folder: string;
  readonly #convertToParquet: ExportRunnerOptions["convertToParquet"];
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #mayExpire: () => Promise<boolean>;
  readonly #nextId: () => string;
  readonly #finished: Counter<"format" | "outcome">;
  /** All exports. The store holds the same, except for `#unsaved` while its writes fail. */
  readonly #jobs = new Map<string, ExportJob>();
  readonly #unsaved = new Set<string>();
  /** New exports that are being stored. They count towards the limits. */
  readonly #creating = new Set<ExportJob>();
  /** In order, so that an export which was removed is not stored again. */
  readonly #writes = new SerialQueue();
  readonly #closing = new AbortController();
  #running: { readonly id: string; readonly stop: AbortController } | undefined;
  /** The owner of the last export that ran. The next export is taken from another owner if one is queued. */
  #lastOwner: string | null = null;
  readonly #queue = new SerialQueue();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: ExportRunnerOptions, lastId: string | null) {
    const { store, folder, convertToParquet, log, registry, now = Date.now, mayExpire = async () => true } = options;
    this.#mayExpire = mayExpire;
    this.#store = store;
    this.#folder = folder;
    this.#convertToParquet = convertToParquet;
    this.#log = log;
    this.#now = now;
    this.#nextId = idMaker("exp_", now, lastId);
    this.#finished = new Counter({
      name: "tocsin_exports_total",
      help: "Exports by format and outcome",
      labelNames: ["format", "outcome"],
      registers: [registry],
    });
    const queuedCount = () => this.#queued().length;
    registry.registerMetric(
      new Gauge({
        name: "tocsin_exports_waiting",
        help: "Exports in the queue",
        registers: [],
        collect() {
          this.set(queuedCount());
        },
      }),
    );
  }

  /** Loads the stored exports, queues the interrupted one again and removes files without an export. */
  async recover(stored: readonly ExportJob[]): Promise<void> {
    for (const { owner = null, ...rest } of stored) {
      const job = { ...rest, owner };
      this.#jobs.set(job.id, job);
      if (job.status === "running") await this.#save({ ...job, status: "pending" });
    }
    await this.#sweep();
    await this.#markLostFiles();
    await this.#removeStrayFiles();
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS).unref();
    this.#start();
  }

  async create({ format, question, owner }: ExportRequest): Promise<ExportJob> {
    if (this.#closing.signal.aborted) throw new StoreUnavailable("closed", "the service is stopping");
    this.#requireKeyLimits(owner);
    if (this.#queued().length + this.#creating.size >= EXPORTS_QUEUED_MAX) {
      const message = `${EXPORTS_QUEUED_MAX} exports are queued already`;
      throw new StoreUnavailable("queue_full", message, QUEUE_FULL_RETRY_SECONDS);
    }
    const createdAt = this.#now();
    const job: ExportJob = {
      id: this.#nextId(),
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
    this.#creating.add(job);
    try {
      await this.#writes.take(async () => {
        await this.#store.exports.put(job);
        this.#jobs.set(job.id, job);
      });
    } finally {
      this.#creating.delete(job);
    }
    this.#start();
    return job;
  }

  #requireKeyLimits(owner: string): void {
    const now = this.#now();
    const own = [...this.#jobs.values(), ...this.#creating].filter((job) => job.owner === owner && job.expiresAt > now);
    const unfinished = own.filter(({ status }) => status === "pending" || status === "running");
    if (unfinished.length >= EXPORTS_UNFINISHED_PER_KEY_MAX) {
      const message = `the key has ${EXPORTS_UNFINISHED_PER_KEY_MAX} unfinished exports; wait until one of them completes`;
      throw new TooManyExports(message, QUEUE_FULL_RETRY_SECONDS);
    }
    if (own.length >= EXPORTS_KEPT_PER_KEY_MAX) {
      const message = `the key has ${EXPORTS_KEPT_PER_KEY_MAX} exports, the maximum; delete one first`;
      throw new TooManyExports(message, Math.ceil((own[0]!.expiresAt - now) / 1000));
    }
  }

  get(id: string): ExportJob | undefined {
    const job = this.#jobs.get(id);
    return job && job.expiresAt > this.#now() ? job : undefined;
  }

  list(owner: string): readonly ExportJob[] {
    const now = this.#now();
    return [...this.#jobs.values()]
      .filter((job) => job.owner === owner && job.expiresAt > now)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  async cancel(id: string): Promise<boolean> {
    const job = this.get(id);
    if (!job) return false;
    await this.#remove(job.id);
    return true;
  }

  async openDownload(id: string): Promise<Download | undefined> {
    const job = this.get(id);
    if (job?.status !== "completed") return undefined;
    const { mediaType, extension } = FORMATS[job.format];
    const file = await openIfPresent(this.#path(job));
    const size = (await file?.stat())?.size;
    if (!file || size === undefined || size !== job.sizeBytes) {
      await file?.close();
      await this.#markLost(job);
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

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#closing.abort(new StoreUnavailable("closed", "the service is stopping"));
    await this.#queue.settled();
    await this.#writes.settled();
  }

  async #markLostFiles(): Promise<void> {
    for (const job of [...this.#jobs.values()].filter(({ status }) => status === "completed")) {
      const found = await stat(this.#path(job)).catch((error: unknown) => {
        if (codeOf(error) === "ENOENT") return undefined;
        throw error;
      });
      if (found?.size !== job.sizeBytes) await this.#markLost(job);
    }
  }

  /** Marks a completed export whose file was removed or changed as failed, so that clients do not wait for it. */
  async #markLost(job: ExportJob): Promise<void> {
    // A file that a concurrent cancellation removed is not lost.
    if (this.#jobs.get(job.id) !== job) return;
    await this.#save({ ...job, status: "failed", rowCount: null, sizeBytes: null, error: FILE_LOST });
    this.#finished.inc({ format: job.format, outcome: "lost" });
    this.#log.error({ export: job.id, format: job.format }, "export file lost");
    await this.#removeFiles(job.id);
  }

  #queued(): ExportJob[] {
    return [...this.#jobs.values()].filter((job) => job.status === "pending");
  }

  /** Continues the queue after the export in flight: only one export runs at a time. */
  #start(): void {
    void this.#queue.take(() => this.#runQueued());
  }

  async #runQueued(): Promise<void> {
    for (let next = this.#next(); next && !this.#closing.signal.aborted; next = this.#next()) {
      this.#lastOwner = next.owner;
      await this.#run(next);
    }
  }

  #next(): ExportJob | undefined {
    const queued = this.#queued();
    return queued.find(({ owner }) => owner !== this.#lastOwner) ?? queued[0];
  }

  async #run(pending: ExportJob): Promise<void> {
    const stop = new AbortController();
    this.#running = { id: pending.id, stop };
    const job = await this.#save({ ...pending, status: "running" });
    const signal = AbortSignal.any([stop.signal, this.#closing.signal]);
    const startedAt = performance.now();
    try {
      const written = await this.#write(job, signal);
      stop.signal.throwIfAborted();
      await this.#save({ ...job, status: "completed", completedAt: this.#now(), ...written });
      // The export may have been cancelled while its completion was being stored.
      stop.signal.throwIfAborted();
      this.#finished.inc({ format: job.format, outcome: "completed" });
      const ms = Math.round(performance.now() - startedAt);
      this.#log.info({ export: job.id, format: job.format, ...written, ms }, "export completed");
    } catch (error) {
      await this.#removeFiles(job.id);
      if (stop.signal.aborted) {
        this.#finished.inc({ format: job.format, outcome: "cancelled" });
      } else if (this.#closing.signal.aborted) {
        await this.#save({ ...job, status: "pending" });
      } else {
        await this.#save({ ...job, status: "failed", completedAt: this.#now(), error: errorForClient(error) });
        this.#finished.inc({ format: job.format, outcome: "failed" });
        this.#log.error({ export: job.id, format: job.format, err: error }, "export failed");
      }
    } finally {
      this.#running = undefined;
    }
  }

  async #write(job: ExportJob, signal: AbortSignal): Promise<{ rowCount: number; sizeBytes: number }> {
    const folder = this.#folder;
    const { fields } = job.question;
    const columns = columnsOf(fields, subjectOf(job));
    let part = join(folder, `${job.id}.part`);
    const rows = this.#rowsOf(job, signal);
    const { rowCount, rowBytesMax } = await writeExport(
      { path: part, format: job.format, named: fields !== null, columns },
      rows,
      signal,
    );
    if (job.format === "parquet") {
      const parquet = join(folder, `${job.id}.parquet.part`);
      const names = columns.map(({ path }) => path);
      await this.#convertToParquet({ from: part, to: parquet, columns: names, rowBytesMax }, signal);
      await rm(part);
      part = parquet;
    }
    signal.throwIfAborted();
    await syncFile(part);
    await rename(part, this.#path(job));
    await syncFile(folder);
    signal.throwIfAborted();
    const { size } = await stat(this.#path(job));
    return { rowCount, sizeBytes: size };
  }

  #rowsOf({ question, owner }: ExportJob, signal: AbortSignal): AsyncIterable<readonly string[]> {
    if (question.subject !== "alerts") {
      const { condition, fromMs, toMs } = question;
      return this.#store.events.scan({ condition, fromMs, toMs }, signal);
    }
    return alertRows(this.#store.alerts, question.filter as AlertFilter, { client: owner ?? "exports", signal });
  }

  async #save(job: ExportJob): Promise<ExportJob> {
    if (this.#jobs.has(job.id)) this.#jobs.set(job.id, job);
    try {
      await this.#writes.take(async () => {
        // The export may have been removed meanwhile.
        if (this.#jobs.has(job.id)) await this.#store.exports.put(job);
      });
      this.#unsaved.delete(job.id);
    } catch (error) {
      // The export itself succeeded. The sweep saves its state as soon as the store accepts writes again, unless it was removed.
      if (this.#jobs.has(job.id)) this.#unsaved.add(job.id);
      this.#log.warn({ export: job.id, err: error }, "export state not saved; the next sweep tries again");
    }
    return job;
  }

  async #remove(id: string): Promise<void> {
    await this.#writes.take(async () => {
      await this.#store.exports.remove(id);
      this.#jobs.delete(id);
      this.#unsaved.delete(id);
    });
    // A running export removes its own file once it has stopped writing.
    if (this.#running?.id === id) this.#running.stop.abort(new Error("the export was cancelled"));
    else void this.#removeFiles(id);
  }

  async #sweep(): Promise<void> {
    try {
      for (const id of this.#unsaved) await this.#save(this.#jobs.get(id)!);
      if (!(await this.#mayExpire())) return;
      const expired = [...this.#jobs.values()].filter((job) => job.expiresAt <= this.#now());
      for (const { id } of expired) await this.#remove(id);
    } catch (error) {
      this.#log.warn({ err: error }, "expired exports not removed; the next sweep tries again");
    }
  }

  #path(job: ExportJob): string {
    return join(this.#folder, `${job.id}.${FORMATS[job.format].extension}`);
  }

  async #removeFiles(id: string): Promise<void> {
    await this.#removeWhere((name) => name.startsWith(`${id}.`));
  }

  /** Removes files that a crash left behind: all that are not the content of a completed export. */
  async #removeStrayFiles(): Promise<void> {
    const completed = [...this.#jobs.values()].filter((job) => job.status === "completed");
    const kept = new Set(completed.map((job) => this.#path(job)));
    await this.#removeWhere((name) => !kept.has(join(this.#folder, name)));
  }

  async #removeWhere(isUnwanted: (name: string) => boolean): Promise<void> {
    const folder = this.#folder;
    try {
      for (const name of await readdir(folder)) if (isUnwanted(name)) await rm(join(folder, name));
    } catch (error) {
      this.#log.warn({ err: error }, "export files not removed; the next start tries again");
    }
  }
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

async function syncFile(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The code of a system error, including one from another thread. */
function codeOf(error: unknown): string {
  if (error instanceof ThreadError) return String(error.details.code);
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const DISK_FULL_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** The error text for the client, without paths or other details of the machine. The log has those. */
function errorForClient(error: unknown): string {
  if (error instanceof StoreUnavailable || error instanceof QueryRefused) return error.message;
  const code = codeOf(error);
  if (DISK_FULL_CODES.has(code) || /no space left/i.test(String(error))) {
    return "the disk of the server is full";
  }
  return "the server could not write the export; see the server log for the id of this export";
}
