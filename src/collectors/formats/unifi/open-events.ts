/** Events that are open or ended recently. The oldest is evicted for the next. */
const OPEN_EVENTS_MAX = 10_000;
const NAMES_MAX = 10_000;
/** Events with longer words, or more of them, are read but not tracked: no device sends them. */
const ID_CHARACTERS_MAX = 128;
const WORDS_MAX = 64;
const NAME_CHARACTERS_MAX = 256;

/** State of an event that a sender reports in parts. */
export interface OpenEvent {
  /** Types already reported. */
  readonly types: readonly string[];
  readonly type: string | undefined;
  readonly startMs: number | null;
  readonly endMs?: number | null;
  readonly device: string | undefined;
  readonly hasEnded: boolean;
}

interface Change {
  readonly id: string;
  readonly before: OpenEvent | undefined;
  readonly after: OpenEvent;
}

/**
 * Tracks open events, so that an update reports only news and an end its duration; and the names of devices, for bodies that
 * only contain their ids. Kept in memory only: it starts empty.
 */
export class OpenEvents {
  readonly #open = new Map<string, OpenEvent>();
  readonly #names = new Map<string, string>();
  #forgotten = 0;
  /** Changes recorded during `record`. */
  #changes: Change[] | undefined;

  /** Number of events evicted before they ended. */
  get evicted(): number {
    return this.#forgotten;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: string): OpenEvent | undefined {
    return this.#open.get(id);
  }

  set(id: string, event: OpenEvent): void {
    const words = [id, event.device ?? "", event.type ?? "", ...event.types];
    if (words.length > WORDS_MAX || words.some((word) => word.length > ID_CHARACTERS_MAX)) return;
    this.#changes?.push({ id, before: this.#open.get(id), after: event });
    const oldest = setNewest(this.#open, id, event, OPEN_EVENTS_MAX);
    if (oldest !== undefined && !oldest.hasEnded) this.#forgotten++;
  }

  /**
   * Runs a reader and returns a rollback of its changes. If its events are not stored, the sender retries, and must be read as
   * if for the first time. Learnt names stay.
   */
  record<Value>(read: () => Value): { readonly value: Value; readonly rollback: () => void } {
    const changes: Change[] = (this.#changes = []);
    try {
      const value = read();
      return { value, rollback: () => changes.reverse().forEach((change) => this.#rollBack(change)) };
    } finally {
      this.#changes = undefined;
    }
  }

  #rollBack({ id, before, after }: Change): void {
    // A later change built on this one: forget the event, since reporting it twice is better than never.
    if (before && this.#open.get(id) === after) this.#open.set(id, before);
    else this.#open.delete(id);
  }

  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  learnName(id: string, name: string): void {
    if (id.length > ID_CHARACTERS_MAX || name.length > NAME_CHARACTERS_MAX) return;
    setNewest(this.#names, id, name, NAMES_MAX);
  }
}

/** Sets a value as the newest, and returns the one that was evicted. */
function setNewest<Value>(map: Map<string, Value>, key: string, value: Value, max: number): Value | undefined {
  let oldest: Value | undefined;
  map.delete(key);
  if (map.size >= max) {
    const [first] = map;
    oldest = first![1];
    map.delete(first![0]);
  }
  map.set(key, value);
  return oldest;
}
