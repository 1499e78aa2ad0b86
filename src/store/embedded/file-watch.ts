import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { fileGone } from "../files/store-failure.ts";
import { FileGone, type GoneFile } from "../files/file-identity.ts";

// Whoever writes to a file notices by itself that it is gone. Files that nobody writes to, such as days that are over, are
// looked at now and then, and whenever somebody asks whether the store is well.

const WATCH_MS = 5000;

const GONE =
  "a file of the data folder was removed or replaced while the service was running: nothing more is stored in it, and a " +
  "restart loses what it held; put it back, or export what reads still show before the restart";
const BACK = "a file of the data folder that was gone is back";

export interface FileWatchOptions {
  readonly look: () => Promise<readonly GoneFile[]>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly everyMs?: number | undefined;
}

export class FileWatch {
  readonly #look: FileWatchOptions["look"];
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  readonly #told = new Set<string>();
  #looking: Promise<readonly GoneFile[]> | undefined;
  #isClosed = false;

  constructor({ look, registry, log, everyMs = WATCH_MS }: FileWatchOptions) {
    this.#look = look;
    this.#log = log;
    const count = async () => (this.#isClosed ? 0 : (await this.gone()).length);
    new Gauge({
      name: "tocsin_store_files_gone",
      help: "Files of the data folder that were removed or replaced while the service was running",
      registers: [registry],
      async collect() {
        this.set(await count());
      },
    });
    // A thread that does not answer is told of by whoever needs it.
    this.#timer = setInterval(() => void this.gone().catch(() => undefined), everyMs).unref();
  }

  /** One look for all who ask at the same time. */
  gone(): Promise<readonly GoneFile[]> {
    return (this.#looking ??= this.#lookAndTell().finally(() => (this.#looking = undefined)));
  }

  /** Rejects while a file is gone. */
  async check(): Promise<void> {
    const [first] = await this.gone();
    if (first) throw fileGone(new FileGone(first.path, first.fault));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#isClosed = true;
    await this.#looking?.catch(() => undefined);
  }

  async #lookAndTell(): Promise<readonly GoneFile[]> {
    const gone = await this.#look();
    for (const { path, fault } of gone) {
      if (this.#told.has(path)) continue;
      this.#told.add(path);
      this.#log.error({ path, fault: `it ${fault}` }, GONE);
    }
    for (const path of this.#told) {
      if (gone.some((file) => file.path === path)) continue;
      this.#told.delete(path);
      this.#log.info({ path }, BACK);
    }
    return gone;
  }
}
