import { hash } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { basename, join } from "node:path";
import { secretsOfAddress, withoutSecrets } from "../../lib/hiding.ts";
import { send } from "../../lib/outgoing.ts";
import { Thread } from "../../lib/thread.ts";
import type { Turns } from "../../lib/turns.ts";
import type { EnrichmentFault, ListStatus } from "../status.ts";
import type { ReadList } from "./read.ts";
import type { ListTable } from "./table.ts";
import type { ListsApi } from "./worker.ts";

// One list: where it comes from, when it is looked at again, and its last good content.

const LIST_BYTES_MAX = 64 * 1024 * 1024;
const FETCH_MS_MAX = 60_000;
/** A list that could not be had is tried again after this, where it would not be its turn before. */
const RETRY_MS = 5 * 60_000;

export interface ListOptions {
  readonly name: string;
  /** A path or an http(s) address. */
  readonly from: string;
  readonly everyMs: number;
  /** Where the last good copies of what came over the network lie. */
  readonly folder: string;
  readonly now: () => number;
  /** One list is read at a time. */
  readonly turns: Turns;
  readonly onFault: (message: string, error: unknown) => void;
}

/** What is remembered of a copy, beside it. */
interface CopyNote {
  /** Of the address it came from: another address is another list. */
  readonly source: string;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
}

export class List {
  readonly name: string;
  readonly #options: ListOptions;
  readonly #url: URL | null;
  readonly #stop = new AbortController();
  #read: ReadList | undefined;
  #readAtMs: number | null = null;
  #fault: EnrichmentFault | null = null;
  #signature = "";
  #dueAtMs = 0;
  #note: CopyNote | undefined;

  constructor(options: ListOptions) {
    this.name = options.name;
    this.#options = options;
    this.#url = /^https?:\/\//i.test(options.from) ? URL.parse(options.from) : null;
  }

  get table(): ListTable | undefined {
    return this.#read?.table;
  }

  get status(): ListStatus {
    const { addresses = 0, networks = 0, domains = 0, badLines = 0, leftOut = 0 } = this.#read ?? {};
    // What else stands in an address may be a key.
    const from = this.#url ? this.#url.origin : basename(this.#options.from);
    const figures = { addresses, networks, domains, badLines, leftOut };
    return { name: this.name, from, ...figures, readAtMs: this.#readAtMs, fault: this.#fault };
  }

  /** What is at hand without the network: the file, or the copy of last time. */
  async open(): Promise<void> {
    if (!this.#url) return void (await this.poll());
    try {
      const note = JSON.parse(await readFile(this.#path("json"), "utf8")) as CopyNote;
      if (note.source !== this.#source) return;
      this.#take(await this.#load(this.#path("list")));
      this.#note = note;
    } catch (error) {
      // Without a copy there is nothing yet; a copy that cannot be read is fetched anew.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.#refuse(error);
    }
  }

  /** Looks at it where it is time to, or the file has changed. True: its entries may be others now. */
  async poll(): Promise<boolean> {
    const { now, everyMs } = this.#options;
    const isDue = now() >= this.#dueAtMs;
    try {
      const isNew = this.#url ? isDue && (await this.#fetch(this.#url)) : await this.#readFile(isDue);
      if (isDue) this.#dueAtMs = now() + everyMs;
      return isNew;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      this.#dueAtMs = now() + Math.min(everyMs, RETRY_MS);
      this.#refuse(error);
      return false;
    }
  }

  close(): void {
    this.#stop.abort();
  }

  async #readFile(isDue: boolean): Promise<boolean> {
    const { size, mtimeMs, ino } = await stat(this.#options.from);
    const signature = `${size} ${mtimeMs} ${ino}`;
    if (signature === this.#signature && !isDue) return false;
    this.#signature = signature;
    this.#take(await this.#load(this.#options.from));
    return true;
  }

  async #fetch(url: URL): Promise<boolean> {
    const { etag, lastModified } = this.#note ?? {};
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const answer = await send({
      method: "GET",
      url: url.href,
      headers: {
        Accept: "text/plain, */*;q=0.5",
        ...(etag !== undefined && { "If-None-Match": etag }),
        ...(lastModified !== undefined && { "If-Modified-Since": lastModified }),
      },
      timeoutMs: FETCH_MS_MAX,
      answerBytesMax: LIST_BYTES_MAX,
      // An address of the house that stands in the settings is meant; a name that leads there may not be.
      allowsPrivate: isIP(host) !== 0,
      signal: this.#stop.signal,
    });
    if (answer.status === 304 && this.#read) {
      this.#fault = null;
      return false;
    }
    if (answer.status !== 200) throw new Error(`the answer has the status ${answer.status}`);
    if (answer.isCut) throw new Error(`it is larger than ${LIST_BYTES_MAX} bytes`);
    await mkdir(this.#options.folder, { recursive: true });
    await writeFile(this.#path("new"), answer.body);
    this.#take(await this.#load(this.#path("new")));
    const { etag: newEtag, "last-modified": newModified } = answer.headers;
    this.#note = { source: this.#source, etag: newEtag, lastModified: newModified };
    // The note goes first: a copy without its own would be taken for what the note speaks of.
    await writeFile(this.#path("json"), JSON.stringify({ source: this.#source }));
    await rename(this.#path("new"), this.#path("list"));
    await writeFile(this.#path("json"), JSON.stringify(this.#note));
    return true;
  }

  #load(path: string): Promise<ReadList> {
    return this.#options.turns.take(() => this.#loadNow(path));
  }

  async #loadNow(path: string): Promise<ReadList> {
    this.#stop.signal.throwIfAborted();
    const { promise: end, reject } = Promise.withResolvers<never>();
    const { signal } = this.#stop;
    const stop = () => reject(new Error("the service stops"));
    signal.addEventListener("abort", stop, { once: true });
    const thread = new Thread<ListsApi>(new URL("./worker.ts", import.meta.url), undefined, reject);
    try {
      const read = await Promise.race([thread.call("read", path, LIST_BYTES_MAX), end]);
      const { addresses, networks, domains, badLines, badSample } = read;
      // A page that says sorry, say.
      if (addresses + networks + domains === 0 && badLines > 0)
        throw new Error(`it holds no address, network or domain; it begins with ${JSON.stringify(badSample)}`);
      return read;
    } finally {
      signal.removeEventListener("abort", stop);
      await thread.end();
    }
  }

  #take(read: ReadList): void {
    this.#read = read;
    this.#readAtMs = this.#options.now();
    this.#fault = null;
  }

  #refuse(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = this.#url
      ? withoutSecrets(message, secretsOfAddress(this.#url.href))
      : code === undefined
        ? message
        : `the file cannot be read (${code})`;
    const text = `the list ${this.name} could not be read: ${reason}${this.#read ? "; its last content is still used" : ""}`;
    // What came over the network may repeat the address, and stands in the error as it came.
    if (this.#fault?.message !== text) this.#options.onFault(text, this.#url ? undefined : error);
    this.#fault = { message: text, atMs: this.#options.now() };
  }

  get #source(): string {
    return hash("sha256", this.#options.from, "hex");
  }

  #path(ending: string): string {
    return join(this.#options.folder, `${this.name}.${ending}`);
  }
}
