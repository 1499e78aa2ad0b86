import { setImmediate } from "node:timers/promises";
import { parseExact } from "../lib/exact-json.ts";
import { foldCase } from "../lib/text.ts";
import { alertView, type AlertSummary } from "../model/alert.ts";
import type { Event } from "../model/event.ts";
import type { EntityFilter } from "../store/ports/alert-store.ts";
import type { Store } from "../store/ports/store.ts";
import { searchableAlert, searchableEvent, type Searchable } from "../store/search/text-matcher.ts";
import type { FairShare } from "./fair-share.ts";

// The feed of changed alerts (by change number) and new events (by place). It reads the store once for all listeners.

const ALERTS_CHUNK_MAX = 500;
/** Yields to other requests between chunks, because listeners may search the text of each event. */
const EVENTS_CHUNK_MAX = 250;

/** A changed alert or a new event. `position` increases within its kind. */
export interface FeedItem<Position extends number | string> {
  readonly position: Position;
  /** Values that filters compare. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
  readonly timeMs: number;
  /** First and last event of an alert. */
  readonly span?: { readonly firstMs: number; readonly lastMs: number } | undefined;
  readonly searchable: Searchable;
  /** The message without its id. */
  readonly message: string;
}

export interface FeedListener {
  /** `isOver` turns true when all listeners together have used their time slice. A listener then reads on by itself. */
  onAlerts(items: readonly AlertFeedItem[], isOver: () => boolean): void;
  onEvents(items: readonly EventFeedItem[], isOver: () => boolean): void;
  /** The feed has failed and delivers nothing more. */
  onFailure(error: unknown): void;
}

export type FeedStore = Pick<Store, "alerts" | "events">;

export class ChangeFeed {
  readonly #store: FeedStore;
  readonly #share: FairShare;
  readonly #listeners = new Set<FeedListener>();
  #running: { readonly ready: Promise<void>; readonly stop: AbortController } | undefined;
  #change = 0;
  #place: string | null = null;

  constructor(store: FeedStore, share: FairShare) {
    this.#store = store;
    this.#share = share;
  }

  /** The last change delivered to listeners. */
  get change(): number {
    return this.#change;
  }

  /** The place of the last event delivered to listeners; null before the first. */
  get place(): string | null {
    return this.#place;
  }

  /** Once resolved, the listener receives everything after `change` and `place`. Returns a function that unsubscribes it. */
  async listen(listener: FeedListener): Promise<() => void> {
    this.#listeners.add(listener);
    const unsubscribe = () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
    try {
      this.#running ??= this.#start();
      await this.#running.ready;
      return unsubscribe;
    } catch (error) {
      unsubscribe();
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
    // True until the start position is known.
    let isBusy = true;
    const deliver = async () => {
      isDue = true;
      if (isBusy) return;
      isBusy = true;
      try {
        while (isDue && !signal.aborted) {
          isDue = false;
          if (await this.#deliverAlerts(signal)) isDue = true;
        }
      } catch (error) {
        this.#fail(error, signal);
      } finally {
        isBusy = false;
      }
    };
    const unsubscribe = alerts.onChange(() => void deliver());
    signal.addEventListener("abort", unsubscribe);
    const change = await alerts.lastChange();
    const place = await events.lastArrival();
    if (signal.aborted) return;
    this.#change = change;
    this.#place = place;
    isBusy = false;
    void this.#followEvents(signal);
    void deliver();
  }

  /** Returns true if there may be more. */
  async #deliverAlerts(signal: AbortSignal): Promise<boolean> {
    const changes = await this.#store.alerts.changedSince(this.#change, ALERTS_CHUNK_MAX);
    if (signal.aborted || changes.length === 0) return false;
    this.#change = changes.at(-1)!.change;
    const items = changes.map(({ change, alert }) => new AlertFeedItem(change, alert));
    const isOver = this.#share.untilOver();
    for (const listener of this.#listeners) listener.onAlerts(items, isOver);
    return true;
  }

  async #followEvents(signal: AbortSignal): Promise<void> {
    try {
      for await (const items of eventItems(this.#store, this.#place, signal)) {
        if (signal.aborted) return;
        this.#place = items.at(-1)!.position;
        const isOver = this.#share.untilOver();
        for (const listener of this.#listeners) listener.onEvents(items, isOver);
      }
    } catch (error) {
      this.#fail(error, signal);
    }
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    for (const listener of this.#listeners) listener.onFailure(error);
  }

  #stop(): void {
    this.#running?.stop.abort();
    this.#running = undefined;
  }
}

/** New events after the given place as they arrive, in chunks. */
export async function* eventItems(
  store: FeedStore,
  after: string | null,
  signal: AbortSignal,
): AsyncGenerator<EventFeedItem[]> {
  for await (const chunk of store.events.arrivals(after, signal)) {
    for (let start = 0; start < chunk.length; start += EVENTS_CHUNK_MAX) {
      if (start > 0) await setImmediate();
      const some = chunk.slice(start, start + EVENTS_CHUNK_MAX);
      yield some.map(({ place, text }) => new EventFeedItem(place, text));
    }
  }
}

/** An assignee as filters compare it; null for nobody. */
export function assigneeField(assignee: string | null): string {
  return (assignee ?? "").toLowerCase();
}

/** An entity as filters compare it; without a kind, one of any kind. */
export function entityField({ kind, value }: EntityFilter): string {
  return `${kind ?? "*"}:${foldCase(value)}`;
}

// Properties that only some listeners need are computed on first use and shared.

export class AlertFeedItem implements FeedItem<number> {
  readonly position: number;
  readonly fields: FeedItem<number>["fields"];
  readonly timeMs: number;
  readonly span: FeedItem<number>["span"];
  readonly message: string;
  readonly #alert: AlertSummary;
  #searchable: Searchable | undefined;

  constructor(change: number, alert: AlertSummary) {
    const { severity, source, status, rule, assignee, tags: tag = [] } = alert;
    this.#alert = alert;
    this.position = change;
    const entity = (alert.entities ?? []).flatMap(({ kind, value }) => [
      entityField({ kind, value }),
      entityField({ value }),
    ]);
    this.fields = { severity, source, status, rule_name: rule.name, assignee: assigneeField(assignee), entity, tag };
    this.timeMs = alert.createdAt;
    this.span = { firstMs: alert.firstEventAt, lastMs: alert.lastEventAt };
    this.message = `event: alert\ndata: ${JSON.stringify({ ...alertView(alert), change })}\n\n`;
  }

  get searchable(): Searchable {
    return (this.#searchable ??= searchableAlert(this.#alert));
  }
}

export class EventFeedItem implements FeedItem<string> {
  readonly position: string;
  readonly message: string;
  readonly #text: string;
  #event: Event | undefined;
  #searchable: Searchable | undefined;

  constructor(place: string, text: string) {
    this.#text = text;
    this.position = place;
    this.message = `event: event\ndata: ${text}\n\n`;
  }

  get #parsed(): Event {
    return (this.#event ??= parseExact(this.#text) as Event);
  }

  get fields(): FeedItem<string>["fields"] {
    const { severity, source, type, class: eventClass } = this.#parsed;
    return { severity, source, type, class: eventClass };
  }

  get timeMs(): number {
    return Date.parse(this.#parsed.timestamp);
  }

  get searchable(): Searchable {
    return (this.#searchable ??= searchableEvent(this.#parsed));
  }
}
