import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { fileGone } from "../files/store-failure.ts";
import { FileGone, type GoneFile } from "../files/file-identity.ts";

// Every write checks that its file is still in place. Idle files, such as those of past days, are checked at intervals and by
// every health check.

const WATCH_MS = 5000;

const GONE =
  "a file of the data folder was removed or replaced while the service was running: nothing more is stored in it, and a " +
  "restart loses its content; put it back, or export the content, which is still readable, before the restart";
const BACK = "a file of the data folder that was missing is back";

export interface FileWatchOptions {
  readonly findGone: () => Promise<readonly GoneFile[]>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly everyMs?: number | undefined;
}

export class FileWatch {
  readonly #findGone: FileWatchOptions["findGone"];
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  readonly #reported = new Set<string>();
  #checking: Promise<readonly GoneFile[]> | undefined;
  #isClosed = false;

  constructor({ findGone, registry, log, everyMs = WATCH_MS }: FileWatchOptions) {
    this.#findGone = findGone;
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
    // A thread that does not answer is reported by the calls that need it.
    this.#timer = setInterval(() => void this.gone().catch(() => undefined), everyMs).unref();
  }

  /** Concurrent callers share one check. */
  gone(): Promise<readonly GoneFile[]> {
    return (this.#checking ??= this.#findAndReport().finally(() => (this.#checking = undefined)));
  }

  /** Rejects while a file is gone. */
  async check(): Promise<void> {
    const [first] = await this.gone();
    if (first) throw fileGone(new FileGone(first.path, first.fault));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#isClosed = true;
    await this.#checking?.catch(() => undefined);
  }

  async #findAndReport(): Promise<readonly GoneFile[]> {
    const gone = await this.#findGone();
    for (const { path, fault } of gone) {
      if (this.#reported.has(path)) continue;
      this.#reported.add(path);
      this.#log.error({ path, fault: `it ${fault}` }, GONE);
    }
    for (const path of this.#reported) {
      if (gone.some((file) => file.path === path)) continue;
      this.#reported.delete(path);
      this.#log.info({ path }, BACK);
    }
    return gone;
  }
}
