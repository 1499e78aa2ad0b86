import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";

// Connections and files of the store need file descriptors, which are limited per process. When none is left, the runtime
// silently closes new connections. Only an attempt to open a file reveals it.

const CHECK_MS = 1000;
/** The minimum time between two equal log messages. */
const LOG_MS = 60_000;
/** The share of descriptors for connections; the store, collectors and exports need the rest. */
const CONNECTIONS_SHARE = 0.5;

export interface FileDescriptorOptions {
  readonly registry: Registry;
  readonly log: Logger;
}

/** Checks periodically whether the process can still open files and connections. */
export class FileDescriptorMonitor {
  readonly #log: Logger;
  readonly #max = openFilesMax();
  readonly #timer: NodeJS.Timeout;
  readonly #seconds: Counter;
  #isExhausted = false;
  #loggedAt = -Infinity;

  constructor({ registry, log }: FileDescriptorOptions) {
    this.#log = log;
    this.#seconds = new Counter({
      name: "tocsin_open_files_exhausted_seconds_total",
      help: "Seconds during which the process had no file descriptor left for files and connections",
      registers: [registry],
    });
    new Gauge({
      name: "tocsin_open_files_max",
      help: "Limit of open files and connections of the process",
      registers: [registry],
    }).set(this.#max);
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref();
  }

  /** The connection limit: the configured one, or less if the store would not have enough descriptors left. */
  connectionsMax(configured: number): number {
    const max = Math.min(configured, Math.floor(this.#max * CONNECTIONS_SHARE));
    if (max < configured) {
      const message = `connections.max is ${configured}, but the process may open only ${this.#max} files; at most ${max} connections are accepted`;
      this.#log.warn(message);
    }
    return max;
  }

  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const wasExhausted = this.#isExhausted;
    const error = openError();
    this.#isExhausted = error !== undefined;
    if (!error) {
      if (wasExhausted) this.#log.warn("file descriptors are available again");
      return;
    }
    this.#seconds.inc(CHECK_MS / 1000);
    const now = performance.now();
    if (now - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now;
    this.#log.error(
      { err: error },
      "file descriptors exhausted; new connections are dropped; raise the limit of open files (LimitNOFILE) or lower connections.max",
    );
  }
}

/** Reads the limit from the diagnostic report, without its network part, which would resolve the names of all peers. */
function openFilesMax(): number {
  // The type of the report lacks this property.
  const report = process.report as typeof process.report & { excludeNetwork: boolean };
  const wasExcluded = report.excludeNetwork;
  report.excludeNetwork = true;
  try {
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
    const soft = Number(userLimits?.open_files?.soft);
    return Number.isFinite(soft) ? soft : Infinity;
  } finally {
    report.excludeNetwork = wasExcluded;
  }
}

/** The error of opening a file when no descriptor is left; undefined if it succeeds. */
function openError(): Error | undefined {
  try {
    closeSync(openSync(devNull, "r"));
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE") return error as Error;
    throw error;
  }
}
