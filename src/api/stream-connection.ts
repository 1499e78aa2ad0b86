import type { ApiKey, Scope } from "../model/key.ts";
import type { Credentials } from "./auth.ts";
import type { AlertTime } from "../store/ports/alert-store.ts";
import { textMatcher, type Searchable } from "../store/search/text-matcher.ts";
import {
  AlertFeedItem,
  eventItems,
  type EventFeedItem,
  type ChangeFeed,
  type FeedStore,
  type FeedItem,
} from "./change-feed.ts";
import type { FairShare } from "./fair-share.ts";
import { StreamOutput } from "./stream-output.ts";

// One open stream: filters changes for its client and resumes from its last position.

/** The output buffer limit. While it is full, nothing more is read from the store for this client. */
const BUFFER_BYTES_MAX = 1024 * 1024;
const ALERTS_CHUNK_MAX = 100;
/** The reconnection delay of clients. */
const RETRY_MS = 3000;

export const STREAM_KINDS = ["alerts", "events"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];
export const SCOPE_OF = { alerts: "alerts:read", events: "events:read" } as const satisfies Record<StreamKind, Scope>;
export const FIELDS_OF = {
  alerts: ["severity", "source", "status", "rule_name", "assignee", "entity", "tag"],
  events: ["severity", "source", "type", "class"],
} as const;

/** Allowed values by field; a missing field allows any value. */
export type StreamFilters = Readonly<Partial<Record<string, readonly string[] | undefined>>>;

export interface ResumePosition {
  readonly change: number;
  readonly place: string | null;
  /** The header or parameter that carried it. */
  readonly field: "Last-Event-ID" | "last_event_id";
}

export interface StreamTimes {
  readonly tickMs: number;
  readonly heartbeatTicks: number;
  /** A client that reads nothing for this long is disconnected. */
  readonly stalledTicksMax: number;
}

export interface StreamRequest {
  readonly key: ApiKey;
  readonly credentials: Credentials;
  readonly kinds: readonly StreamKind[];
  readonly filters: StreamFilters;
  /** The range of `timestamp` for events and of `created_at` for alerts, or of their events if `time` is `overlap`. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly time?: AlertTime | undefined;
  /** Search words, as in the lists. */
  readonly search?: string | undefined;
  /** The last position of the client; undefined: only new changes. */
  readonly resumeFrom: ResumePosition | undefined;
}

type EndReason = "client" | "slow_reader" | "key" | "failure" | "shutdown";

interface StreamConnectionOptions {
  readonly store: FeedStore;
  readonly feed: ChangeFeed;
  /** Shared by streams that catch up, because filters and searches run on the thread that answers requests. */
  readonly share: FairShare;
  readonly request: StreamRequest;
  /** Returns false once the key may no longer read the stream. */
  readonly mayRead: () => Promise<boolean>;
  readonly onEnd: (reason: EndReason, error?: unknown) => void;
}

export class StreamConnection {
  readonly request: StreamRequest;
  readonly output = new StreamOutput(BUFFER_BYTES_MAX);
  readonly #store: FeedStore;
  readonly #feed: ChangeFeed;
  readonly #share: FairShare;
  readonly #mayRead: StreamConnectionOptions["mayRead"];
  readonly #onEnd: StreamConnectionOptions["onEnd"];
  readonly #matchesSearch: ((searchable: Searchable) => boolean) | undefined;
  readonly #stop = new AbortController();
  #change = 0;
  #place: string | null = null;
  /** True while items come from the feed; false while the stream catches up from the store. */
  readonly #isLive = { alerts: false, events: false };
  #quietTicks = 0;
  /** Text to send once the key was checked. */
  #outgoing = "";
  #sending: Promise<void> | undefined;
  #unsubscribe = () => {};

  constructor({ store, feed, share, request, mayRead, onEnd }: StreamConnectionOptions) {
    this.#store = store;
    this.#feed = feed;
    this.#share = share;
    this.request = request;
    this.#mayRead = mayRead;
    this.#onEnd = onEnd;
    this.#matchesSearch = request.search === undefined ? undefined : textMatcher(request.search);
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#feed.listen({
      onAlerts: (items, isOver) => this.#onAlerts(items, isOver),
      onEvents: (items, isOver) => this.#onEvents(items, isOver),
      onFailure: (error) => this.end("failure", error),
    });
    const { resumeFrom, kinds } = this.request;
    const { change, place } = this.#feed;
    this.#change = resumeFrom?.change ?? change;
    this.#place = resumeFrom ? resumeFrom.place : place;
    // A position past the end comes from another store or one that lost its tail; the stream then starts with new changes.
    if (this.#change > change) this.#change = change;
    if (this.#place !== null && (place === null || this.#place > place)) this.#place = place;
    this.output.once("close", () => this.end("client"));
    this.output.write(`retry: ${RETRY_MS}\n\n`);
    if (kinds.includes("alerts")) void this.#endOnFailure(this.#catchUpAlerts());
    if (kinds.includes("events")) void this.#endOnFailure(this.#catchUpEvents());
  }

  tick({ heartbeatTicks, stalledTicksMax }: StreamTimes): void {
    if (this.output.stalledTicks() >= stalledTicksMax) return this.end("slow_reader");
    if (++this.#quietTicks < heartbeatTicks || this.output.readableLength > 0) return;
    // A comment line keeps proxies from closing the connection and detects clients that are gone.
    this.#write(": still here\n\n");
  }

  end(reason: EndReason, error?: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#unsubscribe();
    // Buffered output is discarded if the client is no longer allowed to read it.
    const isCutOff = reason === "slow_reader" || (reason === "key" && this.output.readableLength > 0);
    if (isCutOff) this.output.destroy();
    else this.output.end();
    this.#onEnd(reason, error);
  }

  async #endOnFailure(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.end("failure", error);
    }
  }

  #onAlerts(items: readonly AlertFeedItem[], isOver: () => boolean): void {
    if (!this.#isLive.alerts) return;
    const isComplete = this.#sendAlerts(items, 0, isOver) === items.length;
    if (isComplete && !this.#isFull) return;
    this.#isLive.alerts = false;
    void this.#endOnFailure(this.#catchUpAlerts());
  }

  #onEvents(items: readonly EventFeedItem[], isOver: () => boolean): void {
    if (!this.#isLive.events) return;
    const isComplete = this.#sendEvents(items, 0, isOver) === items.length;
    if (isComplete && !this.#isFull) return;
    this.#isLive.events = false;
    void this.#endOnFailure(this.#catchUpEvents());
  }

  async #catchUpAlerts(): Promise<void> {
    for (;;) {
      await this.#drained();
      if (this.#stop.signal.aborted) return;
      // This check and the switch to live are synchronous, so that no item is lost in between.
      if (this.#change >= this.#feed.change) {
        this.#isLive.alerts = true;
        return;
      }
      const upTo = this.#feed.change;
      const changes = await this.#store.alerts.changedSince(this.#change, ALERTS_CHUNK_MAX);
      const items = changes.map(({ change, alert }) => new AlertFeedItem(change, alert));
      await this.#inSlices(items.length, (from, isOver) => this.#sendAlerts(items, from, isOver));
      if (changes.length === 0) this.#change = upTo;
    }
  }

  async #catchUpEvents(): Promise<void> {
    const hasCaughtUp = () => {
      const { place } = this.#feed;
      this.#isLive.events = place === null || (this.#place !== null && this.#place >= place);
      return this.#isLive.events;
    };
    await this.#drained();
    if (this.#stop.signal.aborted || hasCaughtUp()) return;
    for await (const items of eventItems(this.#store, this.#place, this.#stop.signal)) {
      await this.#inSlices(items.length, (from, isOver) => this.#sendEvents(items, from, isOver));
      await this.#drained();
      if (this.#stop.signal.aborted || hasCaughtUp()) return;
    }
  }

  /** Calls `send` with the next position until it has returned `length`, each time in a slice of its own. */
  async #inSlices(length: number, send: (from: number, isOver: () => boolean) => number): Promise<void> {
    const { signal } = this.#stop;
    for (let sent = 0; sent < length;) {
      const from = sent;
      // A client that left while the stream was queued needs nothing more.
      sent = await this.#share.take((isOver) => (signal.aborted ? length : send(from, isOver)));
    }
  }

  /** Sends items from one position on until the slice is over. Returns the next position. */
  #sendAlerts(items: readonly AlertFeedItem[], from: number, isOver: () => boolean): number {
    let text = "";
    let at = from;
    do {
      const item = items[at++]!;
      if (item.position <= this.#change) continue;
      this.#change = item.position;
      if (this.#passesFilters("alerts", item)) text += this.#withId(item.message);
    } while (at < items.length && !isOver());
    this.#write(text);
    return at;
  }

  #sendEvents(items: readonly EventFeedItem[], from: number, isOver: () => boolean): number {
    let text = "";
    let at = from;
    do {
      const item = items[at++]!;
      if (this.#place !== null && item.position <= this.#place) continue;
      this.#place = item.position;
      if (this.#passesFilters("events", item)) text += this.#withId(item.message);
    } while (at < items.length && !isOver());
    this.#write(text);
    return at;
  }

  #passesFilters(kind: StreamKind, item: FeedItem<number | string>): boolean {
    const { filters, fromMs = -Infinity, toMs = Infinity, time } = this.request;
    const { firstMs, lastMs } = (time === "overlap" && item.span) || { firstMs: item.timeMs, lastMs: item.timeMs };
    return (
      FIELDS_OF[kind].every((field) => isAllowed(filters[field], item.fields[field]!)) &&
      lastMs >= fromMs &&
      firstMs < toMs &&
      (this.#matchesSearch?.(item.searchable) ?? true)
    );
  }

  #withId(message: string): string {
    return `id: ${this.#change}.${this.#place ?? ""}\n${message}`;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#outgoing += text;
    this.#sending ??= this.#endOnFailure(this.#send());
  }

  /** Checks the key before each write, not only on the tick: a revoked key must not read anything more. */
  async #send(): Promise<void> {
    try {
      while (this.#outgoing !== "" && !this.#stop.signal.aborted) {
        if (!(await this.#mayRead())) return this.end("key");
        // The stream may have ended meanwhile, and nothing may follow its end.
        if (this.#stop.signal.aborted) return;
        const text = this.#outgoing;
        this.#outgoing = "";
        this.#quietTicks = 0;
        this.output.write(text);
      }
    } finally {
      this.#sending = undefined;
    }
  }

  get #isFull(): boolean {
    return this.output.isFull || this.#outgoing.length >= BUFFER_BYTES_MAX;
  }

  async #drained(): Promise<void> {
    await this.#sending;
    await this.output.drained();
  }
}

/** True if the filter is missing or has one of the values. */
function isAllowed(allowed: readonly string[] | undefined, value: string | readonly string[]): boolean {
  if (allowed === undefined) return true;
  return typeof value === "string" ? allowed.includes(value) : value.some((each) => allowed.includes(each));
}
