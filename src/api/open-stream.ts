import type { ApiKey, Scope } from "../model/key.ts";
import type { Searchable, Store } from "../store/store.ts";
import { AlertNews, eventNews, type EventNews, type Feed, type FeedStore, type News } from "./feed.ts";
import { StreamOutput } from "./stream-output.ts";

// One stream: what its reader may read and has asked for, from where they left off.

/** Text that waits for a reader; beyond it nothing is read for them. */
const BUFFER_BYTES_MAX = 1024 * 1024;
const CHANGES_AT_ONCE_MAX = 100;
/** How long a client waits before it comes back, in milliseconds. */
const RETRY_MS = 3000;

export const KINDS = ["alerts", "events"] as const;
export type Kind = (typeof KINDS)[number];
export const SCOPE_OF = { alerts: "alerts:read", events: "events:read" } as const satisfies Record<Kind, Scope>;
export const FIELDS_OF = {
  alerts: ["severity", "source", "status", "rule_name", "assignee"],
  events: ["severity", "source", "type", "class"],
} as const;

/** Which values each field may have; a field that is not named may have any. */
export type Filters = Readonly<Partial<Record<string, readonly string[] | undefined>>>;

export interface Place {
  readonly change: number;
  readonly eventId: string | null;
  /** What the reader gave it as. */
  readonly field: "Last-Event-ID" | "last_event_id";
}

export interface StreamTimes {
  readonly tickMs: number;
  readonly heartbeatTicks: number;
  /** A reader who takes nothing for so long is sent away. */
  readonly stalledTicksMax: number;
}

export interface Opening {
  readonly key: ApiKey;
  readonly authorization: string | undefined;
  readonly kinds: readonly Kind[];
  readonly filters: Filters;
  /** Of the time of an event, or of when an alert was made. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Words, as in the lists. */
  readonly search?: string | undefined;
  /** Where the reader left off; undefined: from now on. */
  readonly place: Place | undefined;
}

type EndReason = "client" | "slow_reader" | "key" | "failure" | "shutdown";

type StreamStore = FeedStore & Pick<Store, "searchIn">;

interface StreamOptions {
  readonly store: StreamStore;
  readonly feed: Feed;
  readonly opening: Opening;
  /** Whether the key still opens what is on the stream. */
  readonly mayRead: () => boolean;
  readonly onEnd: (reason: EndReason, error?: unknown) => void;
}

export class Stream {
  readonly opening: Opening;
  readonly output = new StreamOutput(BUFFER_BYTES_MAX);
  readonly #store: StreamStore;
  readonly #feed: Feed;
  readonly #mayRead: StreamOptions["mayRead"];
  readonly #onEnd: StreamOptions["onEnd"];
  readonly #finds: ((what: Searchable) => boolean) | undefined;
  readonly #stop = new AbortController();
  #change = 0;
  #eventId: string | null = null;
  /** Whether it tells what the feed hears, or reads on its own. */
  readonly #isLive = { alerts: false, events: false };
  #quietTicks = 0;
  #leaveFeed = () => {};

  constructor({ store, feed, opening, mayRead, onEnd }: StreamOptions) {
    this.#store = store;
    this.#feed = feed;
    this.opening = opening;
    this.#mayRead = mayRead;
    this.#onEnd = onEnd;
    this.#finds = opening.search === undefined ? undefined : store.searchIn(opening.search);
  }

  async start(): Promise<void> {
    this.#leaveFeed = await this.#feed.listen({
      hearAlerts: (news) => this.#hearAlerts(news),
      hearEvents: (news) => this.#hearEvents(news),
      hearFailure: (error) => this.end("failure", error),
    });
    const { place, kinds } = this.opening;
    const { change, eventId } = this.#feed;
    this.#change = place?.change ?? change;
    this.#eventId = place ? place.eventId : eventId;
    // A place beyond the end is one of another store, or of one that was torn: what is new is new.
    if (this.#change > change) this.#change = change;
    if (this.#eventId !== null && (eventId === null || this.#eventId > eventId)) this.#eventId = eventId;
    this.output.once("close", () => this.end("client"));
    this.output.give(`retry: ${RETRY_MS}\n\n`);
    if (kinds.includes("alerts")) void this.#unlessEnded(this.#catchUpAlerts());
    if (kinds.includes("events")) void this.#unlessEnded(this.#catchUpEvents());
  }

  tick({ heartbeatTicks, stalledTicksMax }: StreamTimes): void {
    if (this.output.stalledTicks() >= stalledTicksMax) return this.end("slow_reader");
    if (++this.#quietTicks < heartbeatTicks || this.output.readableLength > 0) return;
    // A line that says nothing keeps proxies from hanging up, and finds out that nobody is there any more.
    this.#give(": still here\n\n");
  }

  end(reason: EndReason, error?: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#leaveFeed();
    // What waits for a reader who may not read it any more is not sent after all.
    const isCutOff = reason === "slow_reader" || (reason === "key" && this.output.readableLength > 0);
    if (isCutOff) this.output.destroy();
    else this.output.end();
    this.#onEnd(reason, error);
  }

  async #unlessEnded(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.end("failure", error);
    }
  }

  #hearAlerts(news: readonly AlertNews[]): void {
    if (!this.#isLive.alerts) return;
    this.#tellAlerts(news);
    if (!this.output.isFull) return;
    this.#isLive.alerts = false;
    void this.#unlessEnded(this.#catchUpAlerts());
  }

  #hearEvents(news: readonly EventNews[]): void {
    if (!this.#isLive.events) return;
    this.#tellEvents(news);
    if (!this.output.isFull) return;
    this.#isLive.events = false;
    void this.#unlessEnded(this.#catchUpEvents());
  }

  async #catchUpAlerts(): Promise<void> {
    for (;;) {
      await this.output.room();
      if (this.#stop.signal.aborted) return;
      // Nothing happens between this question and the answer to it: no news is lost on the way.
      if (this.#change >= this.#feed.change) {
        this.#isLive.alerts = true;
        return;
      }
      const upTo = this.#feed.change;
      const changes = await this.#store.alerts.changedSince(this.#change, CHANGES_AT_ONCE_MAX);
      this.#tellAlerts(changes.map(({ change, alert }) => new AlertNews(this.#store, change, alert)));
      if (changes.length === 0) this.#change = upTo;
    }
  }

  async #catchUpEvents(): Promise<void> {
    const hasCaughtUp = () => {
      const { eventId } = this.#feed;
      this.#isLive.events = eventId === null || (this.#eventId !== null && this.#eventId >= eventId);
      return this.#isLive.events;
    };
    await this.output.room();
    if (this.#stop.signal.aborted || hasCaughtUp()) return;
    for await (const news of eventNews(this.#store, this.#eventId, this.#stop.signal)) {
      this.#tellEvents(news);
      await this.output.room();
      if (this.#stop.signal.aborted || hasCaughtUp()) return;
    }
  }

  #tellAlerts(news: readonly AlertNews[]): void {
    let text = "";
    for (const item of news) {
      if (item.place <= this.#change) continue;
      this.#change = item.place;
      if (this.#isWanted("alerts", item)) text += this.#withPlace(item.message);
    }
    this.#give(text);
  }

  #tellEvents(news: readonly EventNews[]): void {
    let text = "";
    for (const item of news) {
      if (this.#eventId !== null && item.place <= this.#eventId) continue;
      this.#eventId = item.place;
      if (this.#isWanted("events", item)) text += this.#withPlace(item.message);
    }
    this.#give(text);
  }

  #isWanted(kind: Kind, news: News<number | string>): boolean {
    const { filters, fromMs, toMs } = this.opening;
    return (
      FIELDS_OF[kind].every((field) => filters[field]?.includes(news.fields[field]!) ?? true) &&
      (fromMs === undefined || news.timeMs >= fromMs) &&
      (toMs === undefined || news.timeMs < toMs) &&
      (this.#finds?.(news.searchable) ?? true)
    );
  }

  #withPlace(message: string): string {
    return `id: ${this.#change}.${this.#eventId ?? ""}\n${message}`;
  }

  #give(text: string): void {
    if (text === "") return;
    // Asked each time, not on the tick alone: a key that was revoked reads nothing from then on.
    if (!this.#mayRead()) return this.end("key");
    this.#quietTicks = 0;
    this.output.give(text);
  }
}
