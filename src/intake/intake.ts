import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import { joinFaults, type Fault } from "../lib/fault.ts";
import { formatTime, startOfDay } from "../lib/time.ts";
import { clockBounds, type ClockBounds } from "../model/clock.ts";
import type { EventDraft, JsonObject } from "../model/event.ts";
import { StoreUnavailable, type NewEvent, type Store, type StoredEvent } from "../store/store.ts";
import { checkSubmission, type CheckedSubmission } from "./submission.ts";

// The one door for events: everything that becomes an event passes here and is bounded, checked and counted.

export const BATCH_ITEMS_MAX = 10_000;
/** Told of one submission of a batch: with all of theirs the answer would be larger than the batch. */
const ITEM_FAULTS_MAX = 20;
/** So few that whoever else has a request waits a few milliseconds at the most. */
export const CHUNK_EVENTS_MAX = 100;
/** The same for large ones, whose size says how long they take. */
export const CHUNK_BYTES_MAX = 256 * 1024;
/** So many of one batch are taken in before the next batch has its turn. */
const TURN_CHUNKS_MAX = 10;
/** Events that were let in and are not yet stored. More than this and senders are told to come back. */
export const WAITING_EVENTS_MAX = 50_000;

/** One submission: a value and what is wrong with its text, or without a value why it could not be read. */
export interface Item {
  readonly value?: unknown;
  /** The JSON text of its data, if the caller has it. */
  readonly dataText?: string | undefined;
  readonly faults?: readonly Fault[];
  /** About how large its text is, where it is one of many. */
  readonly sizeBytes?: number;
}

interface BatchOutcome {
  readonly ids: string[];
  readonly rejected: { index: number; details: readonly Fault[] }[];
  /** Why the store refused some, when it did. */
  readonly refusal: StoreUnavailable | undefined;
  /** All that it could store was stored before. */
  readonly replayed: boolean;
}

type Submitted =
  | { readonly kind: "stored"; readonly event: StoredEvent; readonly replayed: boolean }
  | { readonly kind: "refused"; readonly faults: readonly Fault[] };

export interface Intake {
  /** A submission with the same token within a day is the same submission and gets the first one's answer. */
  submit(item: Item, token?: string): Promise<Submitted>;
  /** Everything that is wrong with a submission; nothing is stored or counted. */
  faultsOf(item: Item): readonly Fault[];
  /**
   * Stores what is good, chunk by chunk, and says of the rest why not. The items are read as they are needed. A batch with
   * the same token within a day is the same batch: what is stored of it is not stored again and has the ids it had.
   */
  submitMany(items: Iterable<Item>, token?: string): Promise<BatchOutcome>;
  /** Stores events that other parts of the service make. One whose token is known from the last day is there already. */
  take(events: readonly NewEvent[]): Promise<void>;
  /**
   * Stores events that a collector has read, all of them: a time that cannot be right becomes the time of arrival. With a
   * token, what is stored of the same batch from before is not stored again; the token must stand for the same events, and
   * `atMs`, when they were read, be the same too. Gives the ids of those that were stored now.
   */
  collect(drafts: readonly EventDraft[], token?: string, atMs?: number): Promise<readonly string[]>;
  /** Resolves once everything that was let in is stored or refused. */
  close(): Promise<void>;
}

/** Adds what the service knows about an event. */
export interface Enricher {
  /** What is known now, from memory; undefined: nothing. */
  enrich(raw: JsonObject): JsonObject | undefined;
  /** Hears of what is stored, so that what is found out later can still be added. */
  readonly stored?: ((id: string, draft: EventDraft) => void) | undefined;
}

export interface IntakeOptions {
  readonly store: Store;
  readonly enricher?: Enricher;
  readonly registry: Registry;
  readonly retentionDays: number;
  readonly now?: () => number;
}

export function openIntake(options: IntakeOptions): Intake {
  return new Door(options);
}

type Refusal = "invalid" | StoreUnavailable["reason"];

class Door implements Intake {
  readonly #store: Store;
  readonly #retentionDays: number;
  readonly #now: () => number;
  readonly #enricher: Enricher | undefined;
  readonly #accepted: Counter;
  readonly #refused: Counter<"reason">;
  readonly #sameToken = new Map<string, Promise<Submitted>>();
  readonly #sameBatch = new Map<string, Promise<unknown>>();
  readonly #appends = new Set<Promise<unknown>>();
  #waiting = 0;
  #turns: Promise<void> = Promise.resolve();

  constructor({ store, enricher, registry, retentionDays, now = Date.now }: IntakeOptions) {
    this.#store = store;
    this.#enricher = enricher;
    this.#retentionDays = retentionDays;
    this.#now = now;
    this.#accepted = new Counter({
      name: "tocsin_intake_accepted_total",
      help: "events that were stored",
      registers: [registry],
    });
    this.#refused = new Counter({
      name: "tocsin_intake_refused_total",
      help: "submissions that were not stored, by reason",
      labelNames: ["reason"],
      registers: [registry],
    });
    const waiting = () => this.#waiting;
    registry.registerMetric(
      new Gauge({
        name: "tocsin_intake_waiting",
        help: "events that were let in and are not yet stored",
        registers: [],
        collect() {
          this.set(waiting());
        },
      }),
    );
  }

  faultsOf(item: Item): readonly Fault[] {
    return checkItem(item, clockBounds(this.#now(), this.#retentionDays)).faults ?? [];
  }

  async submit(item: Item, token?: string): Promise<Submitted> {
    const checked = checkItem(item, clockBounds(this.#now(), this.#retentionDays));
    if (checked.faults) {
      this.#count("invalid", 1);
      return { kind: "refused", faults: checked.faults };
    }
    const { draft } = checked;
    if (token === undefined) return this.#storeOne(draft, undefined);
    // Two at once with one token: the second waits for what becomes of the first.
    const underWay = this.#sameToken.get(token);
    if (underWay) return asReplay(await underWay);
    const storing = this.#storeOnce(draft, token);
    this.#sameToken.set(token, storing);
    try {
      return await storing;
    } finally {
      this.#sameToken.delete(token);
    }
  }

  async submitMany(items: Iterable<Item>, token?: string): Promise<BatchOutcome> {
    if (token === undefined) return this.#storeMany(items, { token, known: NOTHING_KNOWN });
    // Two at once with one token: the second looks at what the first has stored.
    const before = this.#sameBatch.get(token) ?? Promise.resolve();
    const storing = before.then(async () =>
      this.#storeMany(items, { token, known: await this.#store.events.findByTokens(token) }),
    );
    const settled = storing.then(
      () => undefined,
      () => undefined,
    );
    this.#sameBatch.set(token, settled);
    try {
      return await storing;
    } finally {
      if (this.#sameBatch.get(token) === settled) this.#sameBatch.delete(token);
    }
  }

  async #storeMany(items: Iterable<Item>, batch: Batch): Promise<BatchOutcome> {
    const rejected: BatchOutcome["rejected"] = [];
    const chunks: Promise<ChunkOutcome>[] = [];
    /** By place in the batch. */
    const stored: string[] = [];
    for (const [index, id] of batch.known) stored[index] = id;
    await this.#takeIn(items, batch, chunks, rejected);
    this.#count("invalid", rejected.length);
    let refusal: StoreUnavailable | undefined;
    for (const outcome of await Promise.all(chunks)) {
      if (outcome.stored) {
        for (const [i, { id }] of outcome.stored.entries()) stored[outcome.indexes[i]!] = id;
        continue;
      }
      if (!(outcome.error instanceof StoreUnavailable)) throw outcome.error;
      refusal = outcome.error;
      const details = [{ field: "", message: `not stored, try again: ${refusal.message}` }];
      for (const index of outcome.indexes) rejected.push({ index, details });
    }
    const ids = stored.filter((id) => id !== undefined);
    const replayed = chunks.length === 0 && ids.length > 0;
    return { ids, rejected: rejected.sort((a, b) => a.index - b.index), refusal, replayed };
  }

  /**
   * Others have requests too: in each turn of the loop one chunk is taken in, and whoever only reads gets in between.
   * Batches come one after the other, so that each is committed at once, and a large one lets others pass now and then.
   */
  async #takeIn(
    items: Iterable<Item>,
    { token, known }: Batch,
    chunks: Promise<ChunkOutcome>[],
    rejected: BatchOutcome["rejected"],
  ): Promise<void> {
    let leave = await this.#enter();
    try {
      const bounds = clockBounds(this.#now(), this.#retentionDays);
      let chunk = newChunk();
      let chunksOfTurn = 0;
      let index = 0;
      for (const item of items) {
        const checked = known.has(index) ? undefined : checkItem(item, bounds);
        if (checked?.draft) {
          chunk.drafts.push(checked.draft);
          chunk.indexes.push(index);
        } else if (checked) {
          rejected.push({ index, details: checked.faults.slice(0, ITEM_FAULTS_MAX) });
        }
        index++;
        chunk.items++;
        chunk.bytes += item.sizeBytes ?? 0;
        const isLarge = chunk.bytes >= CHUNK_BYTES_MAX;
        if (chunk.items < CHUNK_EVENTS_MAX && !isLarge) continue;
        // Reading what is large took long enough for one turn of the loop.
        if (isLarge) await nextTurn();
        if (chunk.drafts.length > 0) chunks.push(this.#storeChunk(chunk, token));
        chunk = newChunk();
        if (++chunksOfTurn === TURN_CHUNKS_MAX) {
          chunksOfTurn = 0;
          leave();
          leave = await this.#enter();
        } else await nextTurn();
      }
      if (chunk.drafts.length > 0) chunks.push(this.#storeChunk(chunk, token));
    } finally {
      leave();
    }
  }

  async take(events: readonly NewEvent[]): Promise<void> {
    const isKnown = await Promise.all(
      events.map(async ({ idempotencyToken: token }) =>
        token === undefined ? false : (await this.#store.events.findByToken(token)) !== undefined,
      ),
    );
    const fresh = events.filter((_, i) => !isKnown[i]);
    if (fresh.length > 0) await this.#append(fresh);
  }

  collect(drafts: readonly EventDraft[], token?: string, atMs = this.#now()): Promise<readonly string[]> {
    const { earliest, latest, now } = clockBounds(atMs, this.#retentionDays);
    const isTimely = ({ timestampMs }: EventDraft) => timestampMs >= earliest && timestampMs <= latest;
    const timely = (draft: EventDraft) => (isTimely(draft) ? draft : asOf(now, draft));
    // Not awaited here: that would hold the drafts until they are stored.
    if (token === undefined) return this.#append(drafts.map((draft) => ({ draft: timely(draft) }))).then(idsOf);
    return this.#collectOnce(drafts, token, { isTimely, timely });
  }

  async #collectOnce(
    drafts: readonly EventDraft[],
    token: string,
    { isTimely, timely }: { isTimely: (draft: EventDraft) => boolean; timely: (draft: EventDraft) => EventDraft },
  ): Promise<readonly string[]> {
    // A day's events of one append are committed together: a token on the first of them tells of them all.
    const parts = Map.groupBy(drafts, (draft) => (isTimely(draft) ? startOfDay(draft.timestampMs) : "untimely"));
    const ids: string[] = [];
    for (const [part, events] of parts) {
      const idempotencyToken = `${token} ${part}`;
      if (await this.#store.events.findByToken(idempotencyToken)) continue;
      const fresh = events.map((draft, i) => ({ draft: timely(draft), ...(i === 0 && { idempotencyToken }) }));
      ids.push(...idsOf(await this.#append(fresh)));
    }
    return ids;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#sameToken.values(), ...this.#appends]);
  }

  /** Resolves when it is this batch's turn, with what ends it. */
  async #enter(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#turns;
    this.#turns = before.then(() => promise);
    await before;
    await nextTurn();
    return resolve;
  }

  async #storeOnce(draft: EventDraft, token: string): Promise<Submitted> {
    const first = await this.#store.events.findByToken(token);
    return first ? { kind: "stored", event: first, replayed: true } : this.#storeOne(draft, token);
  }

  async #storeOne(draft: EventDraft, idempotencyToken: string | undefined): Promise<Submitted> {
    const [event] = await this.#append([{ draft, idempotencyToken }]);
    return { kind: "stored", event: event!, replayed: false };
  }

  async #storeChunk({ drafts, indexes }: Chunk, token: string | undefined): Promise<ChunkOutcome> {
    try {
      const asNew = (draft: EventDraft, i: number) =>
        token === undefined ? { draft } : { draft, idempotencyToken: `${token} ${indexes[i]}` };
      // What was parsed is not needed while the store works: letting go of it spares the collector from copying it.
      const appending = this.#append(drafts.splice(0).map(asNew));
      return { stored: await appending, indexes };
    } catch (error) {
      return { error, indexes };
    }
  }

  #append(given: readonly NewEvent[]): Promise<StoredEvent[]> {
    const events = this.#enricher ? given.map((event) => enriched(event, this.#enricher!)) : given;
    if (this.#waiting + events.length > WAITING_EVENTS_MAX) {
      this.#count("queue_full", events.length);
      return Promise.reject(new StoreUnavailable("queue_full", "too many events are waiting to be stored"));
    }
    const appending = this.#follow(this.#store.events.append(events), events.length);
    return this.#enricher?.stored ? this.#tellStored(appending, events) : appending;
  }

  async #tellStored(appending: Promise<StoredEvent[]>, events: readonly NewEvent[]): Promise<StoredEvent[]> {
    const stored = await appending;
    for (const [i, { id }] of stored.entries()) this.#enricher!.stored!(id, events[i]!.draft);
    return stored;
  }

  async #follow(appending: Promise<StoredEvent[]>, count: number): Promise<StoredEvent[]> {
    this.#waiting += count;
    this.#appends.add(appending);
    try {
      const stored = await appending;
      this.#accepted.inc(count);
      return stored;
    } catch (error) {
      this.#count(error instanceof StoreUnavailable ? error.reason : "failed", count);
      throw error;
    } finally {
      this.#appends.delete(appending);
      this.#waiting -= count;
    }
  }

  #count(reason: Refusal, events: number): void {
    if (events > 0) this.#refused.inc({ reason }, events);
  }
}

function checkItem({ value, dataText, faults }: Item, bounds: ClockBounds): CheckedSubmission {
  if (faults === undefined || faults.length === 0) return checkSubmission(value, bounds, dataText);
  // A text with faults can have a value with others: all are told at once.
  return { faults: value === undefined ? faults : joinFaults(faults, checkSubmission(value, bounds).faults ?? []) };
}

/** What a batch is known by, and the ids of what is stored of it already, by place. */
interface Batch {
  readonly token: string | undefined;
  readonly known: ReadonlyMap<number, string>;
}
const NOTHING_KNOWN: Batch["known"] = new Map();

/** Good submissions and their places in the batch. */
interface Chunk {
  readonly drafts: EventDraft[];
  readonly indexes: number[];
  /** Good and bad, and how large they are. */
  items: number;
  bytes: number;
}

function newChunk(): Chunk {
  return { drafts: [], indexes: [], items: 0, bytes: 0 };
}

type ChunkOutcome =
  | { readonly stored: readonly StoredEvent[]; readonly indexes: readonly number[] }
  | { readonly stored?: undefined; readonly error: unknown; readonly indexes: readonly number[] };

function enriched(event: NewEvent, enricher: Enricher): NewEvent {
  const { draft, idempotencyToken } = event;
  const found = enricher.enrich(draft.raw);
  if (found === undefined) return event;
  return { draft: { ...draft, enrichment: { ...found, ...draft.enrichment } }, idempotencyToken };
}

/** A device whose clock is far off still has something to say: its own idea of the time is kept beside the right one. */
function asOf(now: number, draft: EventDraft): EventDraft {
  const raw = { ...draft.raw, reported_at: formatTime(draft.timestampMs) };
  return { ...draft, timestampMs: now, raw, rawText: undefined };
}

function idsOf(stored: readonly StoredEvent[]): string[] {
  return stored.map(({ id }) => id);
}

function asReplay(submitted: Submitted): Submitted {
  return submitted.kind === "stored" ? { ...submitted, replayed: true } : submitted;
}
