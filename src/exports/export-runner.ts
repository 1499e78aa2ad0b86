import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { greatestId, idMaker } from "../lib/id.ts";
import { ThreadError } from "../lib/thread.ts";
import { DAY_MS } from "../lib/time.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { ExportFormat, ExportJob, ExportQuery } from "../model/export.ts";
import { QuestionRefused, StoreUnavailable, type Store } from "../store/ports/store.ts";
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
  readonly question: ExportQuery;
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
  create(request: ExportRequest): ExportJob;
  get(id: string): ExportJob | undefined;
  /** Stops an export and removes it with its file; false if it does not exist. A download in flight continues. */
  cancel(id: string): boolean;
  /** Undefined unless the export is completed. */
  openDownload(id: string): Promise<Download | undefined>;
  /** Stops the running export. It restarts when the runner is opened again. */
  close(): Promise<void>;
}

export interface ExportRunnerOptions {
  readonly store: Store;
  readonly log: Logger;
  readonly registry: Registry;
  readonly now?: () => number;
  /** Returns false while the clock is not trusted and files must not expire. */
  readonly mayExpire?: () => boolean;
}

export async function openExportRunner(options: ExportRunnerOptions): Promise<ExportRunner> {
  const runner = new QueuedExportRunner(options);
  await runner.recover();
  return runner;
}

class QueuedExportRunner implements ExportRunner {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #mayExpire: () => boolean;
  readonly #nextId: () => string;
  readonly #finished: Counter<"format" | "outcome">;
  /** All exports. The store holds the same, except for `#unsaved` while its writes fail. */
  readonly #jobs = new Map<string, ExportJob>();
  readonly #unsaved = new Set<string>();
  readonly #closing = new AbortController();
  #running: { readonly id: string; readonly stop: AbortController } | undefined;
  /** The owner of the last export that ran. The next export is taken from another owner if one is queued. */
  #lastOwner: string | null = null;
  readonly #queue = new SerialQueue();
  #sweeper: NodeJS.Timeout | undefined;

  constructor({ store, log, registry, now = Date.now, mayExpire = () => true }: ExportRunnerOptions) {
    this.#mayExpire = mayExpire;
    this.#store = store;
    this.#log = log;
    this.#now = now;
    this.#nextId = idMaker("exp_", now, greatestId(store.exports.list().map(({ id }) => id)));
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
  async recover(): Promise<void> {
    for (const stored of this.#store.exports.list()) {
      const job = { ...stored, owner: stored.owner ?? null };
      this.#jobs.set(job.id, job);
      if (job.status === "running") this.#save({ ...job, status: "pending" });
    }
    await this.#sweep();
    await this.#markLostFiles();
    await this.#removeStrayFiles();
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS).unref();
    this.#start();
  }

  create({ format, question, owner }: ExportRequest): ExportJob {
    if (this.#closing.signal.aborted) throw new StoreUnavailable("closed", "the service is stopping");
    this.#requireKeyLimits(owner);
    if (this.#queued().length >= EXPORTS_QUEUED_MAX) {
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
    this.#store.exports.put(job);
    this.#jobs.set(job.id, job);
    this.#start();
    return job;
  }

  #requireKeyLimits(owner: string): void {
    const now = this.#now();
    const own = [...this.#jobs.values()].filter((job) => job.owner === owner && job.expiresAt > now);
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

  cancel(id: string): boolean {
    const job = this.get(id);
    if (!job) return false;
    this.#remove(job);
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
      fileName: `events-${job.id}.${extension}`,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#closing.abort(new StoreUnavailable("closed", "the service is stopping"));
    await this.#queue.settled();
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
    this.#save({ ...job, status: "failed", rowCount: null, sizeBytes: null, error: FILE_LOST });
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
    const job = this.#save({ ...pending, status: "running" });
    const stop = new AbortController();
    this.#running = { id: job.id, stop };
    const signal = AbortSignal.any([stop.signal, this.#closing.signal]);
    const startedAt = performance.now();
    try {
      const written = await this.#write(job, signal);
      // Synchronous with the save: an export cancelled during the final write must not reappear.
      stop.signal.throwIfAborted();
      this.#save({ ...job, status: "completed", completedAt: this.#now(), ...written });
      this.#finished.inc({ format: job.format, outcome: "completed" });
      const ms = Math.round(performance.now() - startedAt);
      this.#log.info({ export: job.id, format: job.format, ...written, ms }, "export completed");
    } catch (error) {
      await this.#removeFiles(job.id);
      if (stop.signal.aborted) {
        this.#finished.inc({ format: job.format, outcome: "cancelled" });
      } else if (this.#closing.signal.aborted) {
        this.#save({ ...job, status: "pending" });
      } else {
        this.#save({ ...job, status: "failed", completedAt: this.#now(), error: errorForClient(error) });
        this.#finished.inc({ format: job.format, outcome: "failed" });
        this.#log.error({ export: job.id, format: job.format, err: error }, "export failed");
      }
    } finally {
      this.#running = undefined;
    }
  }

  async #write(job: ExportJob, signal: AbortSignal): Promise<{ rowCount: number; sizeBytes: number }> {
    const { folder, toParquet } = this.#store.exports;
    const { condition, fromMs, toMs, fields } = job.question;
    const columns = columnsOf(fields);
    let part = join(folder, `${job.id}.part`);
    const events = this.#store.events.scan({ condition, fromMs, toMs }, signal);
    const { rowCount, rowBytesMax } = await writeExport(
      { path: part, format: job.format, named: fields !== null, columns },
      events,
      signal,
    );
    if (job.format === "parquet") {
      const parquet = join(folder, `${job.id}.parquet.part`);
      const names = columns.map(({ path }) => path);
      await toParquet.call(this.#store.exports, { from: part, to: parquet, columns: names, rowBytesMax }, signal);
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

  #save(job: ExportJob): ExportJob {
    this.#jobs.set(job.id, job);
    try {
      this.#store.exports.put(job);
      this.#unsaved.delete(job.id);
    } catch (error) {
      // The export itself succeeded. The sweep saves its state as soon as the store accepts writes again.
      this.#unsaved.add(job.id);
      this.#log.warn({ export: job.id, err: error }, "export state not saved; the next sweep tries again");
    }
    return job;
  }

  #remove(job: ExportJob): void {
    this.#store.exports.remove(job.id);
    this.#jobs.delete(job.id);
    this.#unsaved.delete(job.id);
    // A running export removes its own file once it has stopped writing.
    if (this.#running?.id === job.id) this.#running.stop.abort(new Error("the export was cancelled"));
    else void this.#removeFiles(job.id);
  }

  async #sweep(): Promise<void> {
    try {
      for (const id of this.#unsaved) this.#save(this.#jobs.get(id)!);
      if (!this.#mayExpire()) return;
      for (const job of this.#jobs.values()) if (job.expiresAt <= this.#now()) this.#remove(job);
    } catch (error) {
      this.#log.warn({ err: error }, "expired exports not removed; the next sweep tries again");
    }
  }

  #path(job: ExportJob): string {
    return join(this.#store.exports.folder, `${job.id}.${FORMATS[job.format].extension}`);
  }

  async #removeFiles(id: string): Promise<void> {
    await this.#removeWhere((name) => name.startsWith(`${id}.`));
  }

  /** Removes files that a crash left behind: all that are not the content of a completed export. */
  async #removeStrayFiles(): Promise<void> {
    const completed = [...this.#jobs.values()].filter((job) => job.status === "completed");
    const kept = new Set(completed.map((job) => this.#path(job)));
    await this.#removeWhere((name) => !kept.has(join(this.#store.exports.folder, name)));
  }

  async #removeWhere(isUnwanted: (name: string) => boolean): Promise<void> {
    const { folder } = this.#store.exports;
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
  if (error instanceof StoreUnavailable || error instanceof QuestionRefused) return error.message;
  const code = codeOf(error);
  if (DISK_FULL_CODES.has(code) || /no space left/i.test(String(error))) {
    return "the disk of the server is full";
  }
  return "the server could not write the export; see the server log for the id of this export";
}
