import { once } from "node:events";
import type { Arrival } from "../../ports/event-engine.ts";

// Events in the order of arrival, for followers of the journal. The latest ones are kept in memory, so that a follower that
// keeps up never reads a file.

/** Limits of the events kept in memory. */
const RECENT_EVENTS_MAX = 16_000;
const RECENT_CHARACTERS_MAX = 16 * 1024 * 1024;
const CHUNK_EVENTS_MAX = 2500;
const CHUNK_CHARACTERS_MAX = 2 * 1024 * 1024;

/** Ids rise in the order of arrival: they are the places. */
export interface NumberedArrival extends Arrival {
  readonly seq: number;
}

interface ArrivalGroup {
  readonly lastSeq: number;
  stored: readonly NumberedArrival[] | undefined;
}

/** Reads stored events after one sequence number and up to another from the files, in order, up to the given limits. */
type ReadStored = (after: number, upTo: number, eventsMax: number, charactersMax: number) => Promise<NumberedArrival[]>;

export class Arrivals {
  readonly #read: ReadStored;
  readonly #settled = new EventTarget();
  /** Groups whose commit is in flight, in the order of their sequence numbers. */
  readonly #inFlight: ArrivalGroup[] = [];
  #recent: NumberedArrival[] = [];
  #recentCharacters = 0;
  /** Every event after this one is in `recent`. */
  #recentAfter: number;
  #settledSeq: number;

  /** Every event up to `settledSeq` is stored or was refused. */
  constructor(settledSeq: number, read: ReadStored) {
    this.#settledSeq = settledSeq;
    this.#recentAfter = settledSeq;
    this.#read = read;
  }

  /** Begins a group. The returned function ends it with the events that were stored. Groups may end in any order. */
  begin(lastSeq: number): (stored: readonly NumberedArrival[]) => void {
    const group: ArrivalGroup = { lastSeq, stored: undefined };
    this.#inFlight.push(group);
    return (stored) => {
      group.stored = stored;
      this.#settle();
    };
  }

  /** Amendments up to this event need no call of `amend`: the event is read from its file, which has the new text. */
  get recentAfter(): number {
    return this.#recentAfter;
  }

  /** Replaces the text of a stored event. */
  amend(seq: number, text: string): void {
    const replaceIn = (arrivals: readonly NumberedArrival[]) =>
      arrivals.map((item) => (item.seq === seq ? { ...item, text } : item));
    for (const group of this.#inFlight) if (group.stored) group.stored = replaceIn(group.stored);
    const place = this.#placeAfter(seq - 1);
    const known = this.#recent[place];
    if (known?.seq !== seq) return;
    this.#recentCharacters += text.length - known.text.length;
    this.#recent[place] = { ...known, text };
  }

  #settle(): void {
    const before = this.#settledSeq;
    for (let stored = this.#inFlight[0]?.stored; stored; stored = this.#inFlight[0]?.stored) {
      const { lastSeq } = this.#inFlight.shift()!;
      for (const arrival of stored) {
        this.#recent.push(arrival);
        this.#recentCharacters += arrival.text.length;
      }
      this.#settledSeq = lastSeq;
    }
    if (this.#settledSeq === before) return;
    this.#evict();
    this.#settled.dispatchEvent(new Event("settled"));
  }

  /** Evicts many events at once, because the rest is copied each time. */
  #evict(): void {
    if (this.#recent.length <= RECENT_EVENTS_MAX && this.#recentCharacters <= RECENT_CHARACTERS_MAX) return;
    let dropped = 0;
    while (
      dropped < this.#recent.length &&
      (this.#recent.length - dropped > RECENT_EVENTS_MAX / 2 || this.#recentCharacters > RECENT_CHARACTERS_MAX / 2)
    ) {
      this.#recentCharacters -= this.#recent[dropped]!.text.length;
      this.#recentAfter = this.#recent[dropped]!.seq;
      dropped++;
    }
    this.#recent = this.#recent.slice(dropped);
  }

  async *follow(after: number, signal: AbortSignal): AsyncIterable<NumberedArrival[]> {
    // A follower may be ahead of a torn journal: it continues with the next stored event.
    let seq = Math.min(after, this.#settledSeq);
    while (!signal.aborted) {
      if (seq >= this.#settledSeq) {
        await this.#nextSettled(signal);
        continue;
      }
      const upTo = this.#settledSeq;
      const chunk =
        seq >= this.#recentAfter
          ? this.#recentFrom(seq)
          : await this.#read(seq, upTo, CHUNK_EVENTS_MAX, CHUNK_CHARACTERS_MAX);
      // An empty chunk: the events with these sequence numbers were refused, or retention removed them.
      seq = chunk.at(-1)?.seq ?? upTo;
      if (chunk.length > 0 && !signal.aborted) yield chunk;
    }
  }

  async #nextSettled(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#settled, "settled", { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** The index in `recent` of the first event after this one. */
  #placeAfter(seq: number): number {
    let low = 0;
    let high = this.#recent.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#recent[middle]!.seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #recentFrom(seq: number): NumberedArrival[] {
    const low = this.#placeAfter(seq);
    let end = low;
    let characters = 0;
    while (end < this.#recent.length && end - low < CHUNK_EVENTS_MAX && characters < CHUNK_CHARACTERS_MAX) {
      characters += this.#recent[end++]!.text.length;
    }
    return this.#recent.slice(low, end);
  }
}
