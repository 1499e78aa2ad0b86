/** Things that have begun, or have ended lately. The one known longest makes room for the next. */
const OPEN_EVENTS_MAX = 10_000;
const NAMES_MAX = 10_000;
/** What has a longer word in it, or more of them, is read but not remembered: no device says that. */
const ID_CHARACTERS_MAX = 128;
const WORDS_MAX = 64;
const NAME_CHARACTERS_MAX = 256;

/** What is remembered of something that a sender tells of in parts. */
export interface OpenEvent {
  /** What has been told of it already. */
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
 * What has begun and not ended, so that an update says only what is new and an end how long it took; and the names of the
 * devices that bodies name by their ids only. All of it is a convenience: after a restart it begins empty.
 */
export class OpenEvents {
  readonly #open = new Map<string, OpenEvent>();
  readonly #names = new Map<string, string>();
  #forgotten = 0;
  /** While somebody watches. */
  #changes: Change[] | undefined;

  /** How many made room for others before their end was heard of. */
  get forgotten(): number {
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
    const oldest = remember(this.#open, id, event, OPEN_EVENTS_MAX);
    if (oldest !== undefined && !oldest.hasEnded) this.#forgotten++;
  }

  /**
   * What is read in between, and how to take back that it has been told: where it is not stored, its sender tries again, and
   * is to be heard as if for the first time. Names stay learnt.
   */
  watch<Value>(read: () => Value): { readonly value: Value; readonly takeBack: () => void } {
    const changes: Change[] = (this.#changes = []);
    try {
      const value = read();
      return { value, takeBack: () => changes.reverse().forEach((change) => this.#takeBack(change)) };
    } finally {
      this.#changes = undefined;
    }
  }

  #takeBack({ id, before, after }: Change): void {
    // Where others have built upon it meanwhile, nothing of it is sure: rather told twice than never.
    if (before && this.#open.get(id) === after) this.#open.set(id, before);
    else this.#open.delete(id);
  }

  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  learnName(id: string, name: string): void {
    if (id.length > ID_CHARACTERS_MAX || name.length > NAME_CHARACTERS_MAX) return;
    remember(this.#names, id, name, NAMES_MAX);
  }
}

/** Gives what had to make room. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value, max: number): Value | undefined {
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
