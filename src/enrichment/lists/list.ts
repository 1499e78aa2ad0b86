import { hash } from "node:crypto";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { basename, join } from "node:path";
import { secretsOfAddress, withoutSecrets } from "../../lib/redact.ts";
import { send } from "../../lib/outgoing.ts";
import { Thread } from "../../lib/thread.ts";
import type { SerialQueue } from "../../lib/serial-queue.ts";
import type { EnrichmentFault, ListStatus } from "../enrichment-status.ts";
import type { ParsedList } from "./parse-list.ts";
import type { ListTable } from "./list-table.ts";
import type { ListThreadApi } from "./list-thread.ts";

// One list: its source, its schedule, and its last valid content.

const LIST_BYTES_MAX = 64 * 1024 * 1024;
const FETCH_MS_MAX = 60_000;
/** The retry interval after a failure, if the list is not due earlier. */
const RETRY_MS = 5 * 60_000;

export interface ListOptions {
  readonly name: string;
  /** A path or an HTTP(S) URL. */
  readonly from: string;
  readonly everyMs: number;
  /** The folder of the last valid copies of fetched lists. */
  readonly folder: string;
  readonly now: () => number;
  /** Loads one list at a time. */
  readonly loadQueue: SerialQueue;
  readonly onFault: (message: string, error: unknown) => void;
}

/** Metadata stored with a copy. */
interface CopyMetadata {
  /** A hash of the URL: another URL is another list. */
  readonly source: string;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
}

/** Opens a list with its local content; the first poll fetches what is due. */
export async function openList(options: ListOptions): Promise<List> {
  const list = new List(options);
  await list.loadLocal();
  return list;
}

export class List {
  readonly name: string;
  readonly #options: ListOptions;
  readonly #url: URL | null;
  readonly #stop = new AbortController();
  #content: ParsedList | undefined;
  #readAtMs: number | null = null;
  #fault: EnrichmentFault | null = null;
  #signature = "";
  #dueAtMs = 0;
  #copy: CopyMetadata | undefined;

  constructor(options: ListOptions) {
    this.name = options.name;
    this.#options = options;
    this.#url = /^https?:\/\//i.test(options.from) ? URL.parse(options.from) : null;
  }

  get table(): ListTable | undefined {
    return this.#content?.table;
  }

  get status(): ListStatus {
    const { addresses = 0, networks = 0, domains = 0, badLines = 0, leftOut = 0 } = this.#content ?? {};
    // The rest of a URL may contain a key.
    const from = this.#url ? this.#url.origin : basename(this.#options.from);
    const figures = { addresses, networks, domains, badLines, leftOut };
    return { name: this.name, from, ...figures, readAtMs: this.#readAtMs, fault: this.#fault };
  }

  /** Loads local content: the file, or the last copy of a fetched list. */
  async loadLocal(): Promise<void> {
    if (!this.#url) return void (await this.poll());
    try {
      const copy = JSON.parse(await readFile(this.#path("json"), "utf8")) as CopyMetadata;
      if (copy.source !== this.#source) return;
      this.#take(await this.#load(this.#path("list")));
      this.#copy = copy;
    } catch (error) {
      // A missing copy is normal at first; an unreadable one is fetched again.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.#refuse(error);
    }
  }

  /** Loads the list if it is due or its file has changed. Returns true if entries may have changed. */
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
    const { etag, lastModified } = this.#copy ?? {};
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
      // A private IP address in the settings is intended; a name that resolves to one may not be.
      allowsPrivate: isIP(host) !== 0,
      signal: this.#stop.signal,
    });
    if (answer.status === 304 && this.#content) {
      this.#fault = null;
      return false;
    }
    if (answer.status !== 200) throw new Error(`the response has status ${answer.status}`);
    if (answer.isCut) throw new Error(`it is larger than ${LIST_BYTES_MAX} bytes`);
    await mkdir(this.#options.folder, { recursive: true });
    await writeFile(this.#path("new"), answer.body);
    this.#take(await this.#load(this.#path("new")));
    const { etag: newEtag, "last-modified": newModified } = answer.headers;
    this.#copy = { source: this.#source, etag: newEtag, lastModified: newModified };
    // Invalidate the metadata first, so that the old ETag never describes the new copy.
    await writeFile(this.#path("json"), JSON.stringify({ source: this.#source }));
    await rename(this.#path("new"), this.#path("list"));
    await writeFile(this.#path("json"), JSON.stringify(this.#copy));
    return true;
  }

  #load(path: string): Promise<ParsedList> {
    return this.#options.loadQueue.take(() => this.#loadNow(path));
  }

  async #loadNow(path: string): Promise<ParsedList> {
    this.#stop.signal.throwIfAborted();
    const { promise: end, reject } = Promise.withResolvers<never>();
    const { signal } = this.#stop;
    const stop = () => reject(new Error("the service is stopping"));
    signal.addEventListener("abort", stop, { once: true });
    const thread = new Thread<ListThreadApi>(new URL("./list-thread.ts", import.meta.url), undefined, reject);
    try {
      const read = await Promise.race([thread.call("read", path, LIST_BYTES_MAX), end]);
      const { addresses, networks, domains, badLines, badSample } = read;
      // An HTML error page, for example.
      if (addresses + networks + domains === 0 && badLines > 0)
        throw new Error(`it has no address, network or domain; it begins with ${JSON.stringify(badSample)}`);
      return read;
    } finally {
      signal.removeEventListener("abort", stop);
      await thread.end();
    }
  }

  #take(read: ParsedList): void {
    this.#content = read;
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
    const text = `the list ${this.name} could not be loaded: ${reason}${this.#content ? "; its last content stays in use" : ""}`;
    // The error of a fetched list may contain its URL with secrets.
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
