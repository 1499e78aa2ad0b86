import { once } from "node:events";
import type { StoredEvent } from "../../ports/event-engine.ts";

// Events in the order of arrival, for whoever follows the journal. What was committed last is at hand in memory: a
// follower that keeps up never reads a file.

/** Kept in memory, newest last: events and characters. */
const RECENT_EVENTS_MAX = 16_000;
const RECENT_CHARACTERS_MAX = 16 * 1024 * 1024;
const CHUNK_EVENTS_MAX = 2500;
const CHUNK_CHARACTERS_MAX = 2 * 1024 * 1024;

export interface Arrival extends StoredEvent {
  readonly seq: number;
}

interface ArrivalGroup {
  readonly lastSeq: number;
  stored: readonly Arrival[] | undefined;
}

/** Reads stored events after one sequence number and up to another from the files, in order, some at a time. */
type ReadStored = (after: number, upTo: number, eventsMax: number, charactersMax: number) => Promise<Arrival[]>;

export class Arrivals {
  readonly #read: ReadStored;
  readonly #news = new EventTarget();
  /** Groups that are being committed, in the order of their sequence numbers. */
  readonly #underWay: ArrivalGroup[] = [];
  #recent: Arrival[] = [];
  #recentCharacters = 0;
  /** Every event after this one is in `recent`. */
  #recentAfter: number;
  #settledSeq: number;

  /** Up to `settledSeq` everything is stored or never will be. */
  constructor(settledSeq: number, read: ReadStored) {
    this.#settledSeq = settledSeq;
    this.#recentAfter = settledSeq;
    this.#read = read;
  }

  /** A group is being committed; the answer says what of it was stored. Groups may end in another order than they began. */
  begin(lastSeq: number): (stored: readonly Arrival[]) => void {
    const group: ArrivalGroup = { lastSeq, stored: undefined };
    this.#underWay.push(group);
    return (stored) => {
      group.stored = stored;
      this.#settle();
    };
  }

  /** What is not in memory need not be told of: it is read from the files, where the new text is. */
  get recentAfter(): number {
    return this.#recentAfter;
  }

  /** A stored event has another text now. */
  amend(seq: number, text: string): void {
    const replaceIn = (arrivals: readonly Arrival[]) =>
      arrivals.map((item) => (item.seq === seq ? { ...item, text } : item));
    for (const group of this.#underWay) if (group.stored) group.stored = replaceIn(group.stored);
    const place = this.#placeAfter(seq - 1);
    const known = this.#recent[place];
    if (known?.seq !== seq) return;
    this.#recentCharacters += text.length - known.text.length;
    this.#recent[place] = { ...known, text };
  }

  #settle(): void {
    const before = this.#settledSeq;
    for (let stored = this.#underWay[0]?.stored; stored; stored = this.#underWay[0]?.stored) {
      const { lastSeq } = this.#underWay.shift()!;
      for (const arrival of stored) {
        this.#recent.push(arrival);
        this.#recentCharacters += arrival.text.length;
      }
      this.#settledSeq = lastSeq;
    }
    if (this.#settledSeq === before) return;
    this.#forget();
    this.#news.dispatchEvent(new Event("news"));
  }

  /** In larger steps than one event, since what is left is moved each time. */
  #forget(): void {
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

  async *follow(after: number, signal: AbortSignal): AsyncIterable<Arrival[]> {
    // A follower may have seen what a torn journal has lost since: it goes on with what there is.
    let seq = Math.min(after, this.#settledSeq);
    while (!signal.aborted) {
      if (seq >= this.#settledSeq) {
        await this.#nextNews(signal);
        continue;
      }
      const upTo = this.#settledSeq;
      const chunk =
        seq >= this.#recentAfter
          ? this.#recentFrom(seq)
          : await this.#read(seq, upTo, CHUNK_EVENTS_MAX, CHUNK_CHARACTERS_MAX);
      // Nothing there: sequence numbers of events that were refused, or that retention has removed.
      seq = chunk.at(-1)?.seq ?? upTo;
      if (chunk.length > 0 && !signal.aborted) yield chunk;
    }
  }

  async #nextNews(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#news, "news", { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Where in `recent` the events after this one begin. */
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

  #recentFrom(seq: number): Arrival[] {
    const low = this.#placeAfter(seq);
    let end = low;
    let characters = 0;
    while (end < this.#recent.length && end - low < CHUNK_EVENTS_MAX && characters < CHUNK_CHARACTERS_MAX) {
      characters += this.#recent[end++]!.text.length;
    }
    return this.#recent.slice(low, end);
  }
}
