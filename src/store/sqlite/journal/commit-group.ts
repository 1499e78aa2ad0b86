import type { EventDraft } from "../../../model/event.ts";
import type { StoredEvent } from "../../ports/event-engine.ts";

// Groups of events that are committed together.

/** An append that waits for its commit. */
export interface PendingAppend {
  readonly events: readonly Prepared[];
  readonly bytes: number;
  readonly resolve: (stored: StoredEvent[]) => void;
  readonly reject: (error: Error) => void;
}

/** An event with everything needed to store it. */
export interface Prepared extends StoredEvent {
  readonly seq: number;
  readonly day: number;
  readonly ts: number;
  readonly words: string;
  readonly token: string | null;
  /** For the listeners of commits. */
  readonly draft: EventDraft;
}

/** Events of one day in rising order of seq, as columns, which are cheap to pass between threads. */
export interface DayGroup {
  readonly day: number;
  readonly seqs: readonly number[];
  readonly times: readonly number[];
  readonly bodies: readonly string[];
  readonly words: readonly string[];
  readonly tokens: readonly (string | null)[];
  /** Of events that come from another store and keep an id that is not that of their sequence number. */
  readonly foreign?: readonly (ForeignId | undefined)[] | undefined;
}

export interface ForeignId {
  readonly id: string;
  /** The time of the event's place, which never goes back in the order of arrival. */
  readonly arrivedMs: number;
}

/** Events of one day that are committed together. */
export interface DayEvents {
  readonly events: readonly Prepared[];
  /** The same events for the writer. */
  readonly group: DayGroup;
}

export function groupByDay(waiting: readonly PendingAppend[]): DayEvents[] {
  const events = waiting.flatMap((item) => item.events);
  const isOneDay = events.every(({ day }) => day === events[0]!.day);
  const days = isOneDay ? [events] : [...Map.groupBy(events, ({ day }) => day).values()];
  return days.map((part) => ({
    events: part,
    group: {
      day: part[0]!.day,
      seqs: part.map(({ seq }) => seq),
      times: part.map(({ ts }) => ts),
      bodies: part.map(({ text }) => text),
      words: part.map(({ words }) => words),
      tokens: part.map(({ token }) => token),
    },
  }));
}
