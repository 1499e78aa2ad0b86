import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { LineFormats } from "../line-formats.ts";
import { describeTaughtFault, TAUGHT_FAULT_KINDS, type TaughtFault, type TaughtStatus } from "../taught-status.ts";
import { overlapFaults, testFaults, usableFormats } from "./description-checks.ts";
import { readShipped } from "./shipped.ts";
import { TaughtFiles, type TaughtFileFormat } from "./taught-files.ts";

// All formats of lines: ours, and those that the operator teaches by files in a folder, which is watched.

/** A folder is asked again rather than watched: notifications do not reach network file systems and replaced links. */
const POLL_MS = 2000;
const FAULTS_SHOWN_MAX = 100;

export interface TaughtFormatsOptions {
  readonly folder: string | null;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  readonly everyMs?: number;
}

export class TaughtFormats {
  readonly #options: TaughtFormatsOptions;
  readonly #files: TaughtFiles | undefined;
  readonly #listeners = new Set<(formats: LineFormats) => unknown>();
  readonly #loads: Counter;
  #formats = new LineFormats({ shipped: readShipped(), taught: [] });
  #used: readonly TaughtFileFormat[] = [];
  #faults: readonly TaughtFault[] = [];
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: TaughtFormatsOptions) {
    this.#options = options;
    const { folder, registry, now } = options;
    this.#files = folder === null ? undefined : new TaughtFiles(folder, now);
    const registers = [registry];
    this.#loads = new Counter({
      name: "tocsin_collect_taught_loads_total",
      help: "times that the files of collectors.formats_dir were read because one had changed",
      registers,
    });
    const count = () => this.#used.length;
    new Gauge({
      name: "tocsin_collect_taught_formats",
      help: "formats of collectors.formats_dir that are in use",
      registers,
      collect() {
        this.set(count());
      },
    });
    const faults = () => this.#faults;
    new Gauge({
      name: "tocsin_collect_taught_faults",
      help: "faults in files of collectors.formats_dir, by kind",
      labelNames: ["kind"],
      registers,
      collect() {
        for (const kind of TAUGHT_FAULT_KINDS)
          this.set({ kind }, faults().filter((fault) => fault.kind === kind).length);
      },
    });
  }

  /** The formats in use. */
  get formats(): LineFormats {
    return this.#formats;
  }

  get status(): TaughtStatus {
    const shipped = new Set(readShipped().map(({ format }) => format));
    return {
      folder: this.#options.folder,
      formats: this.#used.map(({ located: { description, file, line }, atMs, isKept }) => ({
        name: description.format,
        about: description.about,
        file,
        line,
        readAtMs: atMs,
        isKept,
        replacesShipped: shipped.has(description.format),
      })),
      faults: this.#faults.slice(0, FAULTS_SHOWN_MAX),
    };
  }

  /** Calls the listener with the formats whenever they change. */
  listen(listener: (formats: LineFormats) => unknown): void {
    this.#listeners.add(listener);
  }

  /** Reads changed files, and again from time to time. */
  async open(): Promise<void> {
    if (this.#files === undefined) return;
    await this.#poll(this.#files);
    this.#schedule(this.#files);
  }

  #schedule(files: TaughtFiles): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      const failed = (error: unknown) => {
        if (!this.#isClosed) this.#options.log.error({ err: error }, "the taught formats could not be put to use");
      };
      this.#polling = this.#poll(files)
        .catch(failed)
        .finally(() => this.#schedule(files));
    }, this.#options.everyMs ?? POLL_MS).unref();
  }

  async #poll(files: TaughtFiles): Promise<void> {
    if (!(await files.poll())) return;
    const found = files.formats;
    const { usable, faults } = usableFormats(found.map(({ located }) => located));
    const shipped = readShipped();
    this.#used = found.filter(({ located }) => usable.includes(located));
    this.#formats = new LineFormats({ shipped, taught: usable.map(({ description }) => description) });
    const tests = testFaults(usable, this.#formats);
    const overlaps = overlapFaults(usable, this.#formats);
    this.#report([...files.faults, ...faults, ...tests, ...overlaps]);
    this.#loads.inc();
    for (const listener of this.#listeners) await listener(this.#formats);
  }

  #report(faults: readonly TaughtFault[]): void {
    const { log } = this.#options;
    const known = new Set(this.#faults.map(describeTaughtFault));
    this.#faults = faults;
    const words = faults.map(describeTaughtFault).filter((text) => !known.has(text));
    for (const text of words.slice(0, FAULTS_SHOWN_MAX)) log.warn(`collectors.formats_dir: ${text}`);
    for (const file of new Set(this.#used.filter(({ isKept }) => isKept).map(({ located }) => located.file))) {
      log.warn(`collectors.formats_dir: ${file}: its last good version stays in use`);
    }
    const names = this.#used.map(({ located }) => located.description.format);
    log.info({ formats: names, faults: faults.length }, "loaded the taught formats");
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#polling;
  }
}

/** Opens even if the folder cannot be read: the status says why. */
export async function openTaughtFormats(options: TaughtFormatsOptions): Promise<TaughtFormats> {
  const formats = new TaughtFormats(options);
  await formats.open();
  return formats;
}
