import { alertView, type AlertSummary } from "../model/alert.ts";
import type { Event } from "../model/event.ts";
import type { Store } from "../store/store.ts";

// What is new, read once for everybody who listens: alerts that changed, by the number of the change, and events, by id.

const CHANGES_AT_ONCE_MAX = 500;

/** Something new. `place` is where it stands in the order of its kind: greater than what came before. */
export interface News<Place extends number | string> {
  readonly place: Place;
  /** What filters look at. */
  readonly fields: Readonly<Record<string, string>>;
  /** The message without its id. */
  readonly message: string;
}
export type AlertNews = News<number>;
export type EventNews = News<string>;

export interface Listener {
  hearAlerts(news: readonly AlertNews[]): void;
  hearEvents(news: readonly EventNews[]): void;
  /** Nothing more will come. */
  hearFailure(error: unknown): void;
}

type FeedStore = Pick<Store, "alerts" | "events">;

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
    const news = changes.map(({ change, alert }) => alertNews(change, alert));
    for (const listener of this.#listeners) listener.hearAlerts(news);
    return true;
  }

  async #followEvents(signal: AbortSignal): Promise<void> {
    try {
      for await (const chunk of this.#store.events.arrivals(this.#eventId, signal)) {
        if (signal.aborted) return;
        this.#eventId = chunk.at(-1)!.id;
        const news = chunk.map(({ id, text }) => eventNews(id, text));
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

export function alertNews(change: number, alert: AlertSummary): AlertNews {
  const { severity, source, status, rule, assignee } = alert;
  const data = JSON.stringify({ ...alertView(alert), change });
  return {
    place: change,
    fields: { severity, source, status, rule_name: rule.name, assignee: (assignee ?? "").toLowerCase() },
    message: `event: alert\ndata: ${data}\n\n`,
  };
}

/** The fields are read only if somebody asks for some of them: most listeners take everything. */
export function eventNews(id: string, text: string): EventNews {
  let fields: Record<string, string> | undefined;
  return {
    place: id,
    get fields() {
      if (!fields) {
        const { severity, source, type, class: eventClass } = JSON.parse(text) as Event;
        fields = { severity, source, type, class: eventClass };
      }
      return fields;
    },
    message: `event: event\ndata: ${text}\n\n`,
  };
}
