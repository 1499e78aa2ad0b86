import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { join } from "node:path";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { greatestId, idMaker } from "../lib/id.ts";
import { ThreadError } from "../lib/thread.ts";
import { DAY_MS } from "../lib/time.ts";
import { Turns } from "../lib/turns.ts";
import type { ExportFormat, ExportJob, ExportQuestion } from "../model/export.ts";
import { QuestionRefused, StoreUnavailable, type Store } from "../store/store.ts";
import { columnsOf } from "./columns.ts";
import { FORMATS } from "./format.ts";
import { writeExport } from "./writer.ts";

// Exports wait in a queue, run one at a time into a file each, and are there to be fetched for a day.

export const EXPORTS_WAITING_MAX = 20;
/** Of one key: those that wait or run, so that it leaves the queue to others, */
export const EXPORTS_PER_KEY_MAX = 5;
/** and those that are kept, so that it does not fill the disk with small ones either. */
export const EXPORTS_KEPT_PER_KEY_MAX = 100;
const EXPORT_LIFE_MS = DAY_MS;
const SWEEP_MS = 60_000;
const QUEUE_FULL_RETRY_SECONDS = 30;
const LOST = "the file of the export is gone or not whole any more: ask for the export again";

interface ExportRequest {
  readonly format: ExportFormat;
  readonly question: ExportQuestion;
  /** The id of the key that asks. */
  readonly owner: string;
}

/** The key that asks has its share of exports. */
export class TooManyExports extends Error {
  readonly retryAfterSeconds: number;
  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.name = "TooManyExports";
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The content of a completed export. Whoever takes it reads the stream to its end or destroys it. */
interface Download {
  readonly stream: Readable;
  readonly sizeBytes: number;
  readonly mediaType: string;
  readonly fileName: string;
}

export interface Exporter {
  /** Throws TooManyExports when the owner has too many, and StoreUnavailable when too many wait. */
  create(request: ExportRequest): ExportJob;
  get(id: string): ExportJob | undefined;
  /** Stops an export and removes it with its file; false when there is none. A download under way goes on. */
  cancel(id: string): boolean;
  /** Undefined while there is nothing to fetch. */
  openDownload(id: string): Promise<Download | undefined>;
  /** Stops the export that runs: it starts again when the exporter is opened next. */
  close(): Promise<void>;
}

export interface ExporterOptions {
  readonly store: Store;
  readonly log: Logger;
  readonly registry: Registry;
  readonly now?: () => number;
  /** Whether files may go because the clock says so. */
  readonly mayExpire?: () => boolean;
}

export async function openExporter(options: ExporterOptions): Promise<Exporter> {
  const exporter = new QueueOfExports(options);
  await exporter.open();
  return exporter;
}

class QueueOfExports implements Exporter {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #mayExpire: () => boolean;
  readonly #nextId: () => string;
  readonly #finished: Counter<"format" | "outcome">;
  /** Every export there is. The store has the same, except for `#unsaved` while it refuses to write. */
  readonly #jobs = new Map<string, ExportJob>();
  readonly #unsaved = new Set<string>();
  readonly #closing = new AbortController();
  #running: { readonly id: string; readonly stop: AbortController } | undefined;
  /** Whose export ran last: the next is somebody else's, where somebody else waits. */
  #lastOwner: string | null = null;
  readonly #turns = new Turns();
  #sweeper: NodeJS.Timeout | undefined;

  constructor({ store, log, registry, now = Date.now, mayExpire = () => true }: ExporterOptions) {
    this.#mayExpire = mayExpire;
    this.#store = store;
    this.#log = log;
    this.#now = now;
    this.#nextId = idMaker("exp_", now, greatestId(store.exports.list().map(({ id }) => id)));
    this.#finished = new Counter({
      name: "tocsin_exports_total",
      help: "exports by format and outcome",
      labelNames: ["format", "outcome"],
      registers: [registry],
    });
    const waiting = () => this.#waiting().length;
    registry.registerMetric(
      new Gauge({
        name: "tocsin_exports_waiting",
        help: "exports that wait for their turn",
        registers: [],
        collect() {
          this.set(waiting());
        },
      }),
    );
  }

  async open(): Promise<void> {
    for (const stored of this.#store.exports.list()) {
      const job = { ...stored, owner: stored.owner ?? null };
      this.#jobs.set(job.id, job);
      if (job.status === "running") this.#save({ ...job, status: "pending" });
    }
    await this.#sweep();
    await this.#noteAllLost();
    await this.#removeStrayFiles();
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS).unref();
    this.#start();
  }

  create({ format, question, owner }: ExportRequest): ExportJob {
    if (this.#closing.signal.aborted) throw new StoreUnavailable("closed", "the service is stopping");
    this.#requireShare(owner);
    if (this.#waiting().length >= EXPORTS_WAITING_MAX) {
      const message = `${EXPORTS_WAITING_MAX} exports are waiting already`;
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
      expiresAt: createdAt + EXPORT_LIFE_MS,
      error: null,
      owner,
    };
    this.#store.exports.put(job);
    this.#jobs.set(job.id, job);
    this.#start();
    return job;
  }

  #requireShare(owner: string): void {
    const now = this.#now();
    const own = [...this.#jobs.values()].filter((job) => job.owner === owner && job.expiresAt > now);
    const unfinished = own.filter(({ status }) => status === "pending" || status === "running");
    if (unfinished.length >= EXPORTS_PER_KEY_MAX) {
      const message = `the key has ${EXPORTS_PER_KEY_MAX} exports that are not done: wait for one of them`;
      throw new TooManyExports(message, QUEUE_FULL_RETRY_SECONDS);
    }
    if (own.length >= EXPORTS_KEPT_PER_KEY_MAX) {
      const message = `the key has ${EXPORTS_KEPT_PER_KEY_MAX} exports: remove one that is not needed any more`;
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
    const file = await openIfThere(this.#path(job));
    const size = (await file?.stat())?.size;
    if (!file || size === undefined || size !== job.sizeBytes) {
      await file?.close();
      await this.#noteLost(job);
      return undefined;
    }
    return {
      // Told where the file ends, the stream ends with its last byte. Else it would ask the disk once more, and a client
      // that has everything by then could hang up before the answer is over.
      stream: file.createReadStream(size > 0 ? { end: size - 1 } : {}),
      sizeBytes: size,
      mediaType,
      fileName: `events-${job.id}.${extension}`,
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#closing.abort(new StoreUnavailable("closed", "the service is stopping"));
    await this.#turns.settled();
  }

  async #noteAllLost(): Promise<void> {
    for (const job of [...this.#jobs.values()].filter(({ status }) => status === "completed")) {
      const found = await stat(this.#path(job)).catch((error: unknown) => {
        if (codeOf(error) === "ENOENT") return undefined;
        throw error;
      });
      if (found?.size !== job.sizeBytes) await this.#noteLost(job);
    }
  }

  /** Somebody has removed or changed the file of a completed export: whoever waits for it must not wait in vain. */
  async #noteLost(job: ExportJob): Promise<void> {
    // Where it was cancelled a moment ago, that is why.
    if (this.#jobs.get(job.id) !== job) return;
    this.#save({ ...job, status: "failed", rowCount: null, sizeBytes: null, error: LOST });
    this.#finished.inc({ format: job.format, outcome: "lost" });
    this.#log.error({ export: job.id, format: job.format }, LOST);
    await this.#removeFiles(job.id);
  }

  #waiting(): ExportJob[] {
    return [...this.#jobs.values()].filter((job) => job.status === "pending");
  }

  /** Goes on with the queue after what is under way: only one export runs. */
  #start(): void {
    void this.#turns.take(() => this.#runWaiting());
  }

  async #runWaiting(): Promise<void> {
    for (let next = this.#next(); next && !this.#closing.signal.aborted; next = this.#next()) {
      this.#lastOwner = next.owner;
      await this.#run(next);
    }
  }

  #next(): ExportJob | undefined {
    const waiting = this.#waiting();
    return waiting.find(({ owner }) => owner !== this.#lastOwner) ?? waiting[0];
  }

  async #run(pending: ExportJob): Promise<void> {
    const job = this.#save({ ...pending, status: "running" });
    const stop = new AbortController();
    this.#running = { id: job.id, stop };
    const signal = AbortSignal.any([stop.signal, this.#closing.signal]);
    const startedAt = performance.now();
    try {
      const written = await this.#write(job, signal);
      // In the same breath as the saving: one that was cancelled while its end was written must not come back.
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
        this.#save({ ...job, status: "failed", completedAt: this.#now(), error: inWords(error) });
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
      // The export itself is fine: what it has become is written as soon as the store takes it.
      this.#unsaved.add(job.id);
      this.#log.warn({ export: job.id, err: error }, "export not recorded yet");
    }
    return job;
  }

  #remove(job: ExportJob): void {
    this.#store.exports.remove(job.id);
    this.#jobs.delete(job.id);
    this.#unsaved.delete(job.id);
    // A running one removes what it has written once it has stopped writing.
    if (this.#running?.id === job.id) this.#running.stop.abort(new Error("the export was cancelled"));
    else void this.#removeFiles(job.id);
  }

  async #sweep(): Promise<void> {
    try {
      for (const id of this.#unsaved) this.#save(this.#jobs.get(id)!);
      if (!this.#mayExpire()) return;
      for (const job of this.#jobs.values()) if (job.expiresAt <= this.#now()) this.#remove(job);
    } catch (error) {
      this.#log.warn({ err: error }, "expired exports not removed yet");
    }
  }

  #path(job: ExportJob): string {
    return join(this.#store.exports.folder, `${job.id}.${FORMATS[job.format].extension}`);
  }

  async #removeFiles(id: string): Promise<void> {
    await this.#removeWhere((name) => name.startsWith(`${id}.`));
  }

  /** What a crash has left behind: files that are not the content of a completed export. */
  async #removeStrayFiles(): Promise<void> {
    const completed = [...this.#jobs.values()].filter((job) => job.status === "completed");
    const kept = new Set(completed.map((job) => this.#path(job)));
    await this.#removeWhere((name) => !kept.has(join(this.#store.exports.folder, name)));
  }

  async #removeWhere(unwanted: (name: string) => boolean): Promise<void> {
    const { folder } = this.#store.exports;
    try {
      for (const name of await readdir(folder)) if (unwanted(name)) await rm(join(folder, name));
    } catch (error) {
      this.#log.warn({ err: error }, "export files not removed; the next start tries again");
    }
  }
}

/** The export may have been cancelled a moment ago. */
async function openIfThere(path: string): Promise<FileHandle | undefined> {
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

/** The code of a system error, also of one that came from another thread. */
function codeOf(error: unknown): string {
  if (error instanceof ThreadError) return String(error.details.code);
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const NO_ROOM_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** For the one who asked for the export: no path, no word of the machine. The log has the rest. */
function inWords(error: unknown): string {
  if (error instanceof StoreUnavailable || error instanceof QuestionRefused) return error.message;
  const code = codeOf(error);
  if (NO_ROOM_CODES.has(code) || /no space left/i.test(String(error))) {
    return "there is not enough room on the disk of the server";
  }
  return "the server could not write the export; its log says why under the id of this export";
}
