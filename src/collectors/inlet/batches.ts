import type { PackedDraft } from "../draft.ts";
import type { ReadFlow } from "../reading.ts";
import { Harvest, type LineReader } from "./reader.ts";
import type { Line, Sender } from "./sender.ts";

// Lines that wait become batches, as fast as somebody asks for them: round the senders, a few lines of each at a time.

export const BATCH_EVENTS_MAX = 200;
const BATCH_CHARACTERS_MAX = 2 * 1024 * 1024;
/** Of one sender before the next has its turn. */
const ROUND_LINES = 16;
/** Before the sockets are looked at again: a flood of datagrams must not be lost while lines are read. */
const TURN_LINES = 64;

/** What is stored together. */
export interface Batch {
  readonly id: number;
  /** Known by it if it comes again. */
  readonly token: string | null;
  /** When its lines were read. */
  readonly atMs: number;
  readonly drafts: readonly PackedDraft[];
  readonly flows: readonly { readonly sender: string; readonly flows: readonly ReadFlow[] }[];
}

/** A batch that somebody wants to hear of again. */
interface Given {
  readonly batch: Omit<Batch, "id">;
  readonly stored: () => void;
}

export class Batches {
  readonly #reader: LineReader;
  readonly #now: () => number;
  /** Senders with lines that wait, the one whose turn it is first. */
  readonly #active: Sender[] = [];
  readonly #isActive = new Set<Sender>();
  readonly #given: Given[] = [];
  readonly #asking: ((batch: Batch | null) => void)[] = [];
  readonly #unconfirmed = new Map<number, () => void>();
  #harvest = new Harvest();
  #isTurnDue = false;
  #stopping = false;
  #lastId = 0;

  constructor(reader: LineReader, now: () => number) {
    this.#reader = reader;
    this.#now = now;
  }

  /** This sender has lines that wait. */
  wake(sender: Sender): void {
    if (this.#isActive.has(sender)) return;
    this.#isActive.add(sender);
    this.#active.push(sender);
    this.#turnSoon();
  }

  /** A batch that was made elsewhere; resolves once it is stored. */
  give(batch: Omit<Batch, "id">): Promise<void> {
    return new Promise((resolve) => {
      this.#given.push({ batch, stored: resolve });
      this.#turnSoon();
    });
  }

  /** The next batch, as soon as there is one; null once all is given after a stop. */
  take(): Promise<Batch | null> {
    return new Promise((resolve) => {
      this.#asking.push(resolve);
      this.#turnSoon();
    });
  }

  /** A batch is stored. */
  stored(id: number): void {
    this.#unconfirmed.get(id)?.();
    this.#unconfirmed.delete(id);
  }

  /** Nothing more will come: whoever asks is told when that was all. */
  stop(): void {
    this.#stopping = true;
    this.#turnSoon();
  }

  #turnSoon(): void {
    if (this.#isTurnDue || this.#asking.length === 0) return;
    if (!this.#stopping && this.#active.length === 0 && this.#given.length === 0 && this.#harvest.size === 0) return;
    this.#isTurnDue = true;
    setImmediate(() => {
      this.#isTurnDue = false;
      this.#turn();
      this.#turnSoon();
    });
  }

  #turn(): void {
    if (this.#given.length > 0) {
      const { batch, stored } = this.#given.shift()!;
      const id = ++this.#lastId;
      this.#unconfirmed.set(id, stored);
      this.#asking.shift()!({ ...batch, id });
      return;
    }
    this.#readSome();
    const harvest = this.#harvest;
    const isFull = harvest.size >= BATCH_EVENTS_MAX || harvest.characters >= BATCH_CHARACTERS_MAX;
    if (harvest.size > 0 && (isFull || this.#active.length === 0)) {
      this.#harvest = new Harvest();
      const { drafts, flows } = harvest;
      this.#asking.shift()!({ id: ++this.#lastId, token: null, atMs: this.#now(), drafts, flows });
    } else if (this.#stopping && harvest.size === 0 && this.#active.length === 0) {
      for (const answer of this.#asking.splice(0)) answer(null);
    }
  }

  #readSome(): void {
    const harvest = this.#harvest;
    let left = Math.min(TURN_LINES, BATCH_EVENTS_MAX - harvest.size);
    while (left > 0 && this.#active.length > 0 && harvest.characters < BATCH_CHARACTERS_MAX) {
      const sender = this.#active.shift()!;
      let line: Line | undefined;
      for (let n = Math.min(ROUND_LINES, left); n > 0 && (line = sender.take()); n--) {
        this.#reader.read(line, sender, harvest);
        left--;
      }
      if (sender.waiting > 0) this.#active.push(sender);
      else this.#isActive.delete(sender);
    }
  }
}
