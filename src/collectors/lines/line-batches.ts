import type { PackedDraft } from "../formats/event-draft.ts";
import type { ParsedFlow } from "../formats/reading.ts";
import { ReadTally, type LineReader } from "./line-reader.ts";
import type { ReceivedLine, LineSender } from "./line-sender.ts";

// Turns queued lines into batches on demand, round-robin over the senders.

export const BATCH_EVENTS_MAX = 200;
const BATCH_CHARACTERS_MAX = 2 * 1024 * 1024;
/** Lines of one sender before the next sender's turn. */
const ROUND_LINES = 16;
/** Lines read before the event loop serves the sockets again, so that no datagrams are lost meanwhile. */
const TURN_LINES = 64;

/** Events and flow records that are stored together. */
export interface LineBatch {
  readonly id: number;
  /** Identifies a repeated batch to the store; null if it cannot be repeated. */
  readonly token: string | null;
  /** Time at which its lines were read. */
  readonly atMs: number;
  readonly drafts: readonly PackedDraft[];
  readonly flows: readonly { readonly sender: string; readonly flows: readonly ParsedFlow[] }[];
}

/** A batch made elsewhere, whose maker awaits its storage. */
interface SubmittedBatch {
  readonly batch: Omit<LineBatch, "id">;
  readonly stored: () => void;
}

export class LineBatches {
  readonly #reader: LineReader;
  readonly #now: () => number;
  /** Senders with queued lines, in the order of their turns. */
  readonly #active: LineSender[] = [];
  readonly #isActive = new Set<LineSender>();
  readonly #submitted: SubmittedBatch[] = [];
  readonly #takers: ((batch: LineBatch | null) => void)[] = [];
  readonly #unconfirmed = new Map<number, () => void>();
  #tally = new ReadTally();
  #isTurnScheduled = false;
  #stopping = false;
  #lastId = 0;

  constructor(reader: LineReader, now: () => number) {
    this.#reader = reader;
    this.#now = now;
  }

  /** Adds a sender that has queued lines to the rotation. */
  activate(sender: LineSender): void {
    if (this.#isActive.has(sender)) return;
    this.#isActive.add(sender);
    this.#active.push(sender);
    this.#scheduleTurn();
  }

  /** Queues a batch made elsewhere; resolves once it is stored. */
  submit(batch: Omit<LineBatch, "id">): Promise<void> {
    return new Promise((resolve) => {
      this.#submitted.push({ batch, stored: resolve });
      this.#scheduleTurn();
    });
  }

  /** Resolves to the next batch; after `stop`, to null once all batches are taken. */
  take(): Promise<LineBatch | null> {
    return new Promise((resolve) => {
      this.#takers.push(resolve);
      this.#scheduleTurn();
    });
  }

  /** Confirms that a batch is stored. */
  stored(id: number): void {
    this.#unconfirmed.get(id)?.();
    this.#unconfirmed.delete(id);
  }

  /** Announces that no more lines will come. */
  stop(): void {
    this.#stopping = true;
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled || this.#takers.length === 0) return;
    if (!this.#stopping && this.#active.length === 0 && this.#submitted.length === 0 && this.#tally.size === 0) return;
    this.#isTurnScheduled = true;
    setImmediate(() => {
      this.#isTurnScheduled = false;
      this.#turn();
      this.#scheduleTurn();
    });
  }

  #turn(): void {
    if (this.#submitted.length > 0) {
      const { batch, stored } = this.#submitted.shift()!;
      const id = ++this.#lastId;
      this.#unconfirmed.set(id, stored);
      this.#takers.shift()!({ ...batch, id });
      return;
    }
    this.#readQueued();
    const tally = this.#tally;
    const isFull = tally.size >= BATCH_EVENTS_MAX || tally.characters >= BATCH_CHARACTERS_MAX;
    if (tally.size > 0 && (isFull || this.#active.length === 0)) {
      this.#tally = new ReadTally();
      const { drafts, flows } = tally;
      this.#takers.shift()!({ id: ++this.#lastId, token: null, atMs: this.#now(), drafts, flows });
    } else if (this.#stopping && tally.size === 0 && this.#active.length === 0) {
      for (const answer of this.#takers.splice(0)) answer(null);
    }
  }

  #readQueued(): void {
    const tally = this.#tally;
    let left = Math.min(TURN_LINES, BATCH_EVENTS_MAX - tally.size);
    while (left > 0 && this.#active.length > 0 && tally.characters < BATCH_CHARACTERS_MAX) {
      const sender = this.#active.shift()!;
      let line: ReceivedLine | undefined;
      for (let n = Math.min(ROUND_LINES, left); n > 0 && (line = sender.take()); n--) {
        this.#reader.read(line, sender, tally);
        left--;
      }
      if (sender.queued > 0) this.#active.push(sender);
      else this.#isActive.delete(sender);
    }
  }
}
