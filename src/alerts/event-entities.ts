import { Counter, type Registry } from "prom-client";
import { parseExact } from "../lib/exact-json.ts";
import type { Alert } from "../model/alert.ts";
import { entitiesOf, type Entity } from "../model/entity.ts";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { EventEngine } from "../store/ports/event-engine.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";

// The entities that the events of findings and alerts name. Detection sends those of the events that it has just processed;
// earlier events of a window are read from the store.

/** Reads in flight. */
const READS_MAX = 50;

export class EventEntities {
  readonly #events: Pick<EventEngine, "get">;
  readonly #unread: Counter;

  constructor(events: Pick<EventEngine, "get">, registry?: Registry) {
    this.#events = events;
    this.#unread = new Counter({
      name: "tocsin_alert_entities_unread_total",
      help: "Events whose entities are missing from an alert because they could not be read",
      registers: registry ? [registry] : [],
    });
  }

  /** A function that returns the entities of each event of these findings. */
  async of(findings: readonly Finding[]): Promise<(eventId: string) => readonly Entity[]> {
    const known = new Map<string, readonly Entity[]>();
    const unknown = new Set<string>();
    for (const { events, entities = {} } of findings) {
      for (const { id } of events) {
        const own = entities[id];
        if (own) known.set(id, own);
        else unknown.add(id);
      }
    }
    const missing = [...unknown].filter((id) => !known.has(id));
    for (const [i, entities] of (await this.#readAll(missing)).entries()) known.set(missing[i]!, entities);
    return (eventId) => known.get(eventId) ?? [];
  }

  /** The entities of each of an alert's events. */
  ofAlert({ relatedEvents }: Pick<Alert, "relatedEvents">): Promise<(readonly Entity[])[]> {
    return this.#readAll(relatedEvents.map(({ id }) => id));
  }

  async #readAll(ids: readonly string[]): Promise<(readonly Entity[])[]> {
    const found: (readonly Entity[])[] = [];
    for (let at = 0; at < ids.length; at += READS_MAX) {
      found.push(...(await Promise.all(ids.slice(at, at + READS_MAX).map((id) => this.#read(id)))));
    }
    return found;
  }

  /** The entities of a stored event; none if retention has removed it. */
  async #read(id: string): Promise<readonly Entity[]> {
    try {
      const text = await this.#events.get(id);
      return text === undefined ? [] : entitiesOf((parseExact(text) as Event).raw);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      // An alert must not wait for a day whose file cannot be read.
      this.#unread.inc();
      return [];
    }
  }
}
