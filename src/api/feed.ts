import { setImmediate } from "node:timers/promises";
import { parseExact } from "../lib/exact-json.ts";
import { alertView, type AlertSummary } from "../model/alert.ts";
import type { Event } from "../model/event.ts";
import type { Searchable, Store } from "../store/store.ts";

// What is new, read once for everybody who listens: alerts that changed, by the number of the change, and events, by id.

const CHANGES_AT_ONCE_MAX = 500;
/** Others have their turn in between: listeners may look each event through for words. */
const EVENTS_AT_ONCE_MAX = 250;

/** Something new. `place` is where it stands in the order of its kind: greater than what came before. */
export interface News<Place extends number | string> {
  readonly place: Place;
  /** What filters look at. */
  readonly fields: Readonly<Record<string, string>>;
  readonly timeMs: number;
  readonly searchable: Searchable;
  /** The message without its id. */
  readonly message: string;
}

export interface Listener {
  hearAlerts(news: readonly AlertNews[]): void;
  hearEvents(news: readonly EventNews[]): void;
  /** Nothing more will come. */
  hearFailure(error: unknown): void;
}

export type FeedStore = Pick<Store, "alerts" | "events" | "searchable">;

export class Feed {
  readonly #store: FeedStore;
  readonly #listeners = new Set<Listener>();
  #running: { readonly ready: Promise<void>; readonly stop: AbortController } | undefined;
  #change = 0;
  #eventId: string | null = null;

  constructor(store: FeedStore) {
    this.#store = store;
  }

  /** The last change that listeners have been told. */
  get change(): number {
    return this.#change;
  }

  /** The last event that listeners have been told; null before the first. */
  get eventId(): string | null {
    return this.#eventId;
  }

  /** From when this resolves, the listener hears everything after `change` and `eventId`. Gives the way to stop it. */
  async listen(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener);
    const leave = () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
    try {
      this.#running ??= this.#start();
      await this.#running.ready;
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  #start() {
    const stop = new AbortController();
    const ready = this.#begin(stop.signal);
    return { ready, stop };
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { alerts, events } = this.#store;
    let isDue = true;
    // Until it is known where to begin.
    let isBusy = true;
    const tell = async () => {
      isDue = true;
      if (isBusy) return;
      isBusy = true;
      try {
        while (isDue && !signal.aborted) {
          isDue = false;
          if (await this.#tellAlerts(signal)) isDue = true;
        }
      } catch (error) {
        this.#fail(error, signal);
      } finally {
        isBusy = false;
      }
    };
    const unhear = alerts.onChange(() => void tell());
    signal.addEventListener("abort", unhear);
    const change = await alerts.lastChange();
    if (signal.aborted) return;
    this.#change = change;
    this.#eventId = events.lastArrival();
    isBusy = false;
    void this.#followEvents(signal);
    void tell();
  }

  /** Whether there may be more. */
  async #tellAlerts(signal: AbortSignal): Promise<boolean> {
    const changes = await this.#store.alerts.changedSince(this.#change, CHANGES_AT_ONCE_MAX);
    if (signal.aborted || changes.length === 0) return false;
    this.#change = changes.at(-1)!.change;
    const news = changes.map(({ change, alert }) => new AlertNews(this.#store, change, alert));
    for (const listener of this.#listeners) listener.hearAlerts(news);
    return true;
  }

  async #followEvents(signal: AbortSignal): Promise<void> {
    try {
      for await (const news of eventNews(this.#store, this.#eventId, signal)) {
        if (signal.aborted) return;
        this.#eventId = news.at(-1)!.place;
        for (const listener of this.#listeners) listener.hearEvents(news);
      }
    } catch (error) {
      this.#fail(error, signal);
    }
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    for (const listener of this.#listeners) listener.hearFailure(error);
  }

  #stop(): void {
    this.#running?.stop.abort();
    this.#running = undefined;
  }
}

/** Events after one of them as they arrive, some at a time. */
export async function* eventNews(
  store: FeedStore,
  after: string | null,
  signal: AbortSignal,
): AsyncGenerator<EventNews[]> {
  for await (const chunk of store.events.arrivals(after, signal)) {
    for (let start = 0; start < chunk.length; start += EVENTS_AT_ONCE_MAX) {
      if (start > 0) await setImmediate();
      const some = chunk.slice(start, start + EVENTS_AT_ONCE_MAX);
      yield some.map(({ id, text }) => new EventNews(store, id, text));
    }
  }
}

// What only some listeners ask for is made when the first of them asks, once for all of them.

export class AlertNews implements News<number> {
  readonly place: number;
  readonly fields: News<number>["fields"];
  readonly timeMs: number;
  readonly message: string;
  readonly #store: FeedStore;
  readonly #alert: AlertSummary;
  #searchable: Searchable | undefined;

  constructor(store: FeedStore, change: number, alert: AlertSummary) {
    const { severity, source, status, rule, assignee } = alert;
    this.#store = store;
    this.#alert = alert;
    this.place = change;
    this.fields = { severity, source, status, rule_name: rule.name, assignee: (assignee ?? "").toLowerCase() };
    this.timeMs = alert.createdAt;
    this.message = `event: alert\ndata: ${JSON.stringify({ ...alertView(alert), change })}\n\n`;
  }

  get searchable(): Searchable {
    return (this.#searchable ??= this.#store.searchable.alert(this.#alert));
  }
}

export class EventNews implements News<string> {
  readonly place: string;
  readonly message: string;
  readonly #store: FeedStore;
  readonly #text: string;
  #event: Event | undefined;
  #searchable: Searchable | undefined;

  constructor(store: FeedStore, id: string, text: string) {
    this.#store = store;
    this.#text = text;
    this.place = id;
    this.message = `event: event\ndata: ${text}\n\n`;
  }

  get #read(): Event {
    return (this.#event ??= parseExact(this.#text) as Event);
  }

  get fields(): News<string>["fields"] {
    const { severity, source, type, class: eventClass } = this.#read;
    return { severity, source, type, class: eventClass };
  }

  get timeMs(): number {
    return Date.parse(this.#read.timestamp);
  }

  get searchable(): Searchable {
    return (this.#searchable ??= this.#store.searchable.event(this.#read));
  }
}
