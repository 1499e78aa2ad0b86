import { open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { makeFolder } from "../lib/folder.ts";
import { greatestId, idMaker } from "../lib/id.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { subjectOf, type ExportJob, type ParquetTask } from "../model/export.ts";
import type { AlertFilter } from "../store/ports/alert-store.ts";
import { QueryRefused, StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { alertRows } from "./alert-rows.ts";
import { columnsOf } from "./export-columns.ts";
import {
  codeOf,
  exportPath,
  exportsOf,
  newExportJob,
  openExportFile,
  removeExportFiles,
  requireRoom,
  type Download,
  type ExportRequest,
  type Exports,
} from "./export-jobs.ts";
import { FORMATS } from "./export-formats.ts";
import { writeExport } from "./export-writer.ts";

// Exports are queued, run one at a time into a file each, and can be downloaded for a day.

const SWEEP_MS = 60_000;
const FILE_LOST = "the file of the export is gone or damaged; create the export again";

export interface ExportRunner extends Exports {
  get(id: string): ExportJob | undefined;
  list(owner: string): readonly ExportJob[];
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
  /** Distinguishes the files of this runner from those of an earlier one, on another node, that may not know yet that it is over. */
  readonly tag?: string | undefined;
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
  readonly #tag: string | undefined;
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
  #stopListening: (() => void) | undefined;

  constructor(options: ExportRunnerOptions, lastId: string | null) {
    const { store, folder, convertToParquet, log, registry, now = Date.now, mayExpire = async () => true } = options;
    this.#mayExpire = mayExpire;
    this.#store = store;
    this.#folder = folder;
    this.#tag = options.tag;
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
    const isShared = this.#store.exports.onChange !== undefined;
    this.#stopListening = this.#store.exports.onChange?.(() => void this.#reconcile());
    this.#sweeper = setInterval(() => {
      void this.#sweep();
      if (isShared) void this.#reconcile();
    }, SWEEP_MS).unref();
    this.#start();
  }

  async create(request: ExportRequest): Promise<ExportJob> {
    if (this.#closing.signal.aborted) throw new StoreUnavailable("closed", "the service is stopping");
    requireRoom([...this.#jobs.values(), ...this.#creating], request.owner, this.#now());
    const job = newExportJob(this.#nextId(), request, this.#now());
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

  get(id: string): ExportJob | undefined {
    const job = this.#jobs.get(id);
    return job && job.expiresAt > this.#now() ? job : undefined;
  }

  list(owner: string): readonly ExportJob[] {
    return exportsOf(owner, this.#jobs.values(), this.#now());
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
    const download = await openExportFile(this.#folder, job);
    if (!download) await this.#markLost(job);
    return download;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#stopListening?.();
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
      await this.#removeWhere((name) => name.startsWith(`${this.#baseOf(job.id)}.`));
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

  async #write(job: ExportJob, signal: AbortSignal): Promise<Pick<ExportJob, "rowCount" | "sizeBytes" | "file">> {
    const folder = this.#folder;
    const { fields } = job.question;
    const columns = columnsOf(fields, subjectOf(job));
    const base = this.#baseOf(job.id);
    const file = `${base}.${FORMATS[job.format].extension}`;
    let part = join(folder, `${base}.part`);
    const rows = this.#rowsOf(job, signal);
    const { rowCount, rowBytesMax } = await writeExport(
      { path: part, format: job.format, named: fields !== null, columns },
      rows,
      signal,
    );
    if (job.format === "parquet") {
      const parquet = join(folder, `${base}.parquet.part`);
      const names = columns.map(({ path }) => path);
      await this.#convertToParquet({ from: part, to: parquet, columns: names, rowBytesMax }, signal);
      await rm(part);
      part = parquet;
    }
    signal.throwIfAborted();
    await syncFile(part);
    const path = join(folder, file);
    await rename(part, path);
    await syncFile(folder);
    signal.throwIfAborted();
    const { size } = await stat(path);
    return { rowCount, sizeBytes: size, ...(this.#tag !== undefined && { file }) };
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
        // The export may have been removed meanwhile, by this node or by another.
        if (this.#jobs.has(job.id) && !(await this.#store.exports.update(job))) this.#forget(job.id);
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
      this.#forget(id);
    });
  }

  #forget(id: string): void {
    this.#jobs.delete(id);
    this.#unsaved.delete(id);
    // A running export removes its own file once it has stopped writing.
    if (this.#running?.id === id) this.#running.stop.abort(new Error("the export was cancelled"));
    else void this.#removeFiles(id);
  }

  /** Takes over what other nodes have created and removed. */
  async #reconcile(): Promise<void> {
    try {
      await this.#writes.take(async () => {
        const stored = new Map((await this.#store.exports.list()).map((job) => [job.id, job]));
        for (const id of this.#jobs.keys()) if (!stored.has(id)) this.#forget(id);
        for (const job of stored.values()) if (!this.#jobs.has(job.id)) this.#jobs.set(job.id, job);
      });
    } catch (error) {
      this.#log.warn({ err: error }, "exports of other nodes not read; the next change or sweep tries again");
    }
    if (!this.#closing.signal.aborted) this.#start();
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

  /** The beginning of the names of an export's files. */
  #baseOf(id: string): string {
    return this.#tag === undefined ? id : `${id}.${this.#tag}`;
  }

  #path(job: ExportJob): string {
    return exportPath(this.#folder, job);
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
    try {
      await removeExportFiles(this.#folder, isUnwanted);
    } catch (error) {
      this.#log.warn({ err: error }, "export files not removed; the next start tries again");
    }
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
