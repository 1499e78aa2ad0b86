import type { Logger } from "pino";
import { makeFolder } from "../lib/folder.ts";
import { idMaker } from "../lib/id.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { ExportJob } from "../model/export.ts";
import type { ExportStore } from "../store/ports/export-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import {
  exportsOf,
  newExportJob,
  openExportFile,
  removeExportFiles,
  requireRoom,
  type Download,
  type ExportRequest,
  type Exports,
} from "./export-jobs.ts";

// Exports of a store that several nodes share: any node takes requests, and one of them runs the exports.

const FILE_RETRY_SECONDS = 30;

export interface SharedExportsOptions {
  readonly exports: ExportStore;
  /** Where the files of all nodes are, if they share a storage. */
  readonly folder: string;
  readonly log: Logger;
  readonly now: () => number;
}

export class SharedExports implements Exports {
  readonly #options: SharedExportsOptions;
  readonly #newId: () => string;
  /** One after the other, so that the limits count the requests of this node exactly. */
  readonly #creating = new SerialQueue();

  constructor(options: SharedExportsOptions) {
    this.#options = options;
    this.#newId = idMaker("exp_", options.now);
    makeFolder(options.folder);
  }

  create(request: ExportRequest): Promise<ExportJob> {
    const { exports, now } = this.#options;
    return this.#creating.take(async () => {
      requireRoom(await exports.list(), request.owner, now());
      const job = newExportJob(this.#newId(), request, now());
      await exports.put(job);
      return job;
    });
  }

  async get(id: string): Promise<ExportJob | undefined> {
    const stored = await this.#options.exports.get(id);
    if (!stored || stored.expiresAt <= this.#options.now()) return undefined;
    // Exports of early versions, which a migration has brought, have none.
    const { owner = null, ...rest } = stored;
    return { ...rest, owner };
  }

  async list(owner: string): Promise<readonly ExportJob[]> {
    return exportsOf(owner, await this.#options.exports.list(), this.#options.now());
  }

  async cancel(id: string): Promise<boolean> {
    const { exports, folder, log } = this.#options;
    if (!(await this.get(id))) return false;
    await exports.remove(id);
    // The node that runs exports hears of it, too, and stops one that is running.
    await removeExportFiles(folder, (name) => name.startsWith(`${id}.`)).catch((error: unknown) => {
      log.warn({ err: error, export: id }, "the file of an export was not removed; the node that runs exports does it");
    });
    return true;
  }

  async openDownload(id: string): Promise<Download | undefined> {
    const job = await this.get(id);
    if (job?.status !== "completed") return undefined;
    const download = await openExportFile(this.#options.folder, job);
    if (download) return download;
    // It may have been cancelled meanwhile.
    if (!(await this.get(id))) return undefined;
    const message =
      "this node cannot find the file of the export; the setting exports.folder must name a storage that all nodes reach";
    throw new StoreUnavailable("failed", message, FILE_RETRY_SECONDS);
  }
}
