import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";

// Connections and files of the store need file descriptors, of which a process may have only so many. Without one left,
// the runtime closes new connections and tells nobody: only opening something shows it.

const LOOK_MS = 1000;
/** Between two log lines that say the same. */
const LOG_MS = 60_000;
/** Of the descriptors, what connections may take; the store, collectors and exports need the rest. */
const CONNECTIONS_SHARE = 0.5;

export interface OpenFilesOptions {
  readonly registry: Registry;
  readonly log: Logger;
}

/** Whether the process can still open files and connections. */
export class OpenFiles {
  readonly #log: Logger;
  readonly #max = openFilesMax();
  readonly #timer: NodeJS.Timeout;
  readonly #seconds: Counter;
  #isExhausted = false;
  #loggedAt = -Infinity;

  constructor({ registry, log }: OpenFilesOptions) {
    this.#log = log;
    this.#seconds = new Counter({
      name: "tocsin_open_files_exhausted_seconds_total",
      help: "Seconds in which the process could open no file and accept no connection",
      registers: [registry],
    });
    new Gauge({
      name: "tocsin_open_files_max",
      help: "How many files and connections the process may have open",
      registers: [registry],
    }).set(this.#max);
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** As many connections as are wanted, or as the process can have while the store still works. */
  connectionsMax(wanted: number): number {
    const max = Math.min(wanted, Math.floor(this.#max * CONNECTIONS_SHARE));
    if (max < wanted) {
      const message = `connections.max is ${wanted}, but the process may open only ${this.#max} files: ${max} connections are taken at most`;
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

  #look(): void {
    const wasExhausted = this.#isExhausted;
    const error = openError();
    this.#isExhausted = error !== undefined;
    if (!error) {
      if (wasExhausted) this.#log.warn("files and connections can be opened again");
      return;
    }
    this.#seconds.inc(LOOK_MS / 1000);
    const now = performance.now();
    if (now - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now;
    this.#log.error(
      { err: error },
      "no file descriptor is left: new connections are dropped; raise the limit of open files (LimitNOFILE), or lower connections.max",
    );
  }
}

/** From the diagnostic report, without its network part: that would look up the names of all peers. */
function openFilesMax(): number {
  // The type of the report does not know the setting yet.
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

/** Why nothing can be opened; undefined where something can. */
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
