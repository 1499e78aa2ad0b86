import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import { joinFaults, type Fault } from "../lib/fault.ts";
import { formatTime, startOfDay } from "../lib/time.ts";
import { clockBounds, type ClockBounds } from "../model/clock.ts";
import type { EventDraft, JsonObject } from "../model/event.ts";
import type { NewEvent, StoredEvent } from "../store/ports/event-engine.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { checkSubmission, type CheckedSubmission } from "./submission.ts";

// The single entry point for events: every event passes through here and is limited, validated and counted.

export const BATCH_ITEMS_MAX = 10_000;
/** Faults reported for one submission of a batch; with all of them the response could be larger than the batch. */
const ITEM_FAULTS_MAX = 20;
/** Small enough that other requests wait a few milliseconds at most. */
export const CHUNK_EVENTS_MAX = 100;
/** The same limit for large submissions. */
export const CHUNK_BYTES_MAX = 256 * 1024;
/** Chunks of one batch that are read before the next batch gets a turn. */
const CHUNKS_PER_TURN_MAX = 10;
/** Bytes of one batch that are accepted and not yet stored. The rest of the batch waits as text. */
export const UNSTORED_BYTES_MAX = 4 * 1024 * 1024;
/** Accepted events that are not stored yet. Beyond the limit, senders have to retry later. */
export const PENDING_EVENTS_MAX = 50_000;

/** One submission: a value and the faults of its text, or only the faults of a text that could not be parsed. */
export interface SubmissionItem {
  readonly value?: unknown;
  /** The JSON text of its data, if the caller has it. */
  readonly dataText?: string | undefined;
  readonly faults?: readonly Fault[];
  /** The approximate size of its text, if it is part of a batch. */
  readonly sizeBytes?: number;
}

interface BatchOutcome {
  readonly ids: string[];
  readonly rejected: { index: number; details: readonly Fault[] }[];
  /** The store's reason for refusing some of them, if it did. */
  readonly refusal: StoreUnavailable | undefined;
  /** True if everything valid had been stored before. */
  readonly replayed: boolean;
}

type SubmitOutcome =
  | { readonly kind: "stored"; readonly event: StoredEvent; readonly replayed: boolean }
  | { readonly kind: "refused"; readonly faults: readonly Fault[] };

export interface Intake {
  /** Stores a submission. A repeated token within a day returns the first result. */
  submit(item: SubmissionItem, token?: string): Promise<SubmitOutcome>;
  /** Validates a submission without storing or counting it. */
  faultsOf(item: SubmissionItem): readonly Fault[];
  /**
   * Stores valid submissions chunk by chunk and returns the faults of the others. Items are read on demand. For a repeated token
   * within a day, submissions that are already stored keep their ids and are not stored again.
   */
  submitMany(items: Iterable<SubmissionItem>, token?: string): Promise<BatchOutcome>;
  /** Stores events that other parts of the service create; a token of the last day deduplicates them. */
  storeInternal(events: readonly NewEvent[]): Promise<void>;
  /**
   * Stores all events of a collector; an implausible time is replaced by the time of arrival. With a token, events of the batch that
   * are already stored are not stored again; a token must always come with the same events and the same `atMs`, the time when
   * they were read. `attemptToken` does the same for a rejected call that is repeated, without a look-up before the first.
   * Returns the ids of newly stored events.
   */
  collect(
    drafts: readonly EventDraft[],
    token?: string,
    atMs?: number,
    attemptToken?: string,
  ): Promise<readonly string[]>;
  /** Resolves once all accepted events are stored or refused. */
  close(): Promise<void>;
}

export interface Enricher {
  /** Returns the enrichment available in memory, if any. */
  enrich(raw: JsonObject): JsonObject | undefined;
  /** Called with each stored event, so that later findings can be added. */
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
  return new StoreIntake(options);
}

type NotStoredReason = "invalid" | StoreUnavailable["reason"];

class StoreIntake implements Intake {
  readonly #store: Store;
  readonly #retentionDays: number;
  readonly #now: () => number;
  readonly #enricher: Enricher | undefined;
  readonly #accepted: Counter;
  readonly #refused: Counter<"reason">;
  readonly #submissionsInFlight = new Map<string, Promise<SubmitOutcome>>();
  readonly #batchesInFlight = new Map<string, Promise<unknown>>();
  readonly #appends = new Set<Promise<unknown>>();
  #pending = 0;
  #batchQueue: Promise<void> = Promise.resolve();

  constructor({ store, enricher, registry, retentionDays, now = Date.now }: IntakeOptions) {
    this.#store = store;
    this.#enricher = enricher;
    this.#retentionDays = retentionDays;
    this.#now = now;
    this.#accepted = new Counter({
      name: "tocsin_intake_accepted_total",
      help: "events stored",
      registers: [registry],
    });
    this.#refused = new Counter({
      name: "tocsin_intake_refused_total",
      help: "submissions not stored, by reason",
      labelNames: ["reason"],
      registers: [registry],
    });
    const waiting = () => this.#pending;
    registry.registerMetric(
      new Gauge({
        name: "tocsin_intake_waiting",
        help: "events accepted and not stored yet",
        registers: [],
        collect() {
          this.set(waiting());
        },
      }),
    );
  }

  faultsOf(item: SubmissionItem): readonly Fault[] {
    return checkItem(item, clockBounds(this.#now(), this.#retentionDays)).faults ?? [];
  }

  async submit(item: SubmissionItem, token?: string): Promise<SubmitOutcome> {
    const checked = checkItem(item, clockBounds(this.#now(), this.#retentionDays));
    if (checked.faults) {
      this.#count("invalid", 1);
      return { kind: "refused", faults: checked.faults };
    }
    const { draft } = checked;
    if (token === undefined) return this.#storeOne(draft, undefined);
    // Of two concurrent submissions with one token, the second gets the result of the first.
    const inFlight = this.#submissionsInFlight.get(token);
    if (inFlight) return asReplay(await inFlight);
    const storing = this.#storeOnce(draft, token);
    this.#submissionsInFlight.set(token, storing);
    try {
      return await storing;
    } finally {
      this.#submissionsInFlight.delete(token);
    }
  }

  async submitMany(items: Iterable<SubmissionItem>, token?: string): Promise<BatchOutcome> {
    if (token === undefined) return this.#storeMany(items, { token, known: NONE_STORED });
    // Of two concurrent batches with one token, the second starts after the first and finds its stored events.
    const before = this.#batchesInFlight.get(token) ?? Promise.resolve();
    const storing = before.then(async () =>
      this.#storeMany(items, { token, known: await this.#store.events.findByTokens(token) }),
    );
    const settled = storing.then(
      () => undefined,
      () => undefined,
    );
    this.#batchesInFlight.set(token, settled);
    try {
      return await storing;
    } finally {
      if (this.#batchesInFlight.get(token) === settled) this.#batchesInFlight.delete(token);
    }
  }

  async #storeMany(items: Iterable<SubmissionItem>, batch: IdempotentBatch): Promise<BatchOutcome> {
    const rejected: BatchOutcome["rejected"] = [];
    const chunks: Promise<ChunkOutcome>[] = [];
    /** By position in the batch. */
    const stored: string[] = [];
    for (const [index, id] of batch.known) stored[index] = id;
    await this.#readChunks(items, batch, chunks, rejected);
    this.#count("invalid", rejected.length);
    let refusal: StoreUnavailable | undefined;
    for (const outcome of await Promise.all(chunks)) {
      if (outcome.stored) {
        for (const [i, id] of outcome.stored.entries()) stored[outcome.indexes[i]!] = id;
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
   * Reads one chunk per turn of the event loop, so that other requests are served in between. Batches take turns: a small batch is
   * committed as a whole, and a large one lets others pass every few chunks.
   */
  async #readChunks(
    items: Iterable<SubmissionItem>,
    { token, known }: IdempotentBatch,
    chunks: Promise<ChunkOutcome>[],
    rejected: BatchOutcome["rejected"],
  ): Promise<void> {
    let endTurn = await this.#awaitTurn();
    try {
      const bounds = clockBounds(this.#now(), this.#retentionDays);
      let chunk = newChunk();
      let chunksOfTurn = 0;
      let unstoredBytes = 0;
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
        // Parsing a large chunk takes a whole turn of the event loop.
        if (isLarge) await nextTurn();
        unstoredBytes += chunk.bytes;
        if (chunk.drafts.length > 0) chunks.push(this.#storeChunk(chunk, token));
        chunk = newChunk();
        const isAhead = unstoredBytes >= UNSTORED_BYTES_MAX;
        if (++chunksOfTurn === CHUNKS_PER_TURN_MAX || isAhead) {
          chunksOfTurn = 0;
          endTurn();
          if (isAhead) {
            unstoredBytes = 0;
            await chunks.at(-1);
          }
          endTurn = await this.#awaitTurn();
        } else await nextTurn();
      }
      if (chunk.drafts.length > 0) chunks.push(this.#storeChunk(chunk, token));
    } finally {
      endTurn();
    }
  }

  async storeInternal(events: readonly NewEvent[]): Promise<void> {
    const isKnown = await Promise.all(
      events.map(async ({ idempotencyToken: token }) =>
        token === undefined ? false : (await this.#store.events.findByToken(token)) !== undefined,
      ),
    );
    const fresh = events.filter((_, i) => !isKnown[i]);
    if (fresh.length > 0) await this.#append(fresh);
  }

  collect(
    drafts: readonly EventDraft[],
    token?: string,
    atMs = this.#now(),
    attemptToken?: string,
  ): Promise<readonly string[]> {
    const { earliest, latest, now } = clockBounds(atMs, this.#retentionDays);
    const isTimely = ({ timestampMs }: EventDraft) => timestampMs >= earliest && timestampMs <= latest;
    const timely = (draft: EventDraft) => (isTimely(draft) ? draft : withArrivalTime(now, draft));
    if (token !== undefined) return this.#collectOnce(drafts, token, { isTimely, timely });
    const { storesWholeDays } = this.#store.events;
    const tokenOf = (i: number) => (attemptToken === undefined || storesWholeDays ? undefined : `${attemptToken} ${i}`);
    // Not awaited here, since that would keep the drafts in memory until they are stored.
    return this.#append(drafts.map((draft, i) => ({ draft: timely(draft), idempotencyToken: tokenOf(i) }))).then(idsOf);
  }

  async #collectOnce(
    drafts: readonly EventDraft[],
    token: string,
    { isTimely, timely }: { isTimely: (draft: EventDraft) => boolean; timely: (draft: EventDraft) => EventDraft },
  ): Promise<readonly string[]> {
    const parts = Map.groupBy(drafts, (draft) => (isTimely(draft) ? startOfDay(draft.timestampMs) : "untimely"));
    const ids: string[] = [];
    for (const [part, events] of parts) {
      const fresh = await this.#notStored(events.map(timely), `${token} ${part}`);
      if (fresh.length > 0) ids.push(...idsOf(await this.#append(fresh)));
    }
    return ids;
  }

  /** The events of one day that are not stored yet, with the tokens by which a repetition will know them. */
  async #notStored(drafts: readonly EventDraft[], token: string): Promise<NewEvent[]> {
    const { events } = this.#store;
    if (events.storesWholeDays) {
      // A token on the first of them covers all.
      if (await events.findByToken(token)) return [];
      return drafts.map((draft, i) => ({ draft, ...(i === 0 && { idempotencyToken: token }) }));
    }
    const known = await events.findByTokens(token);
    return drafts.map((draft, i) => ({ draft, idempotencyToken: `${token} ${i}` })).filter((_, i) => !known.has(i));
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#submissionsInFlight.values(), ...this.#appends]);
  }

  /** Resolves when it is this batch's turn, with the function that ends the turn. */
  async #awaitTurn(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#batchQueue;
    this.#batchQueue = before.then(() => promise);
    await before;
    await nextTurn();
    return resolve;
  }

  async #storeOnce(draft: EventDraft, token: string): Promise<SubmitOutcome> {
    const first = await this.#store.events.findByToken(token);
    return first ? { kind: "stored", event: first, replayed: true } : this.#storeOne(draft, token);
  }

  async #storeOne(draft: EventDraft, idempotencyToken: string | undefined): Promise<SubmitOutcome> {
    const [event] = await this.#append([{ draft, idempotencyToken }]);
    return { kind: "stored", event: event!, replayed: false };
  }

  async #storeChunk({ drafts, indexes }: Chunk, token: string | undefined): Promise<ChunkOutcome> {
    try {
      const asNew = (draft: EventDraft, i: number) =>
        token === undefined ? { draft } : { draft, idempotencyToken: `${token} ${indexes[i]}` };
      // Parsed drafts are released while the store works, which spares the garbage collector from copying them.
      const appending = this.#append(drafts.splice(0).map(asNew));
      return { stored: idsOf(await appending), indexes };
    } catch (error) {
      return { error, indexes };
    }
  }

  #append(given: readonly NewEvent[]): Promise<StoredEvent[]> {
    const events = this.#enricher ? given.map((event) => enriched(event, this.#enricher!)) : given;
    if (this.#pending + events.length > PENDING_EVENTS_MAX) {
      this.#count("queue_full", events.length);
      return Promise.reject(new StoreUnavailable("queue_full", "too many events are waiting to be stored"));
    }
    const appending = this.#trackAppend(this.#store.events.append(events), events.length);
    return this.#enricher?.stored ? this.#notifyEnricher(appending, events) : appending;
  }

  async #notifyEnricher(appending: Promise<StoredEvent[]>, events: readonly NewEvent[]): Promise<StoredEvent[]> {
    const stored = await appending;
    for (const [i, { id }] of stored.entries()) this.#enricher!.stored!(id, events[i]!.draft);
    return stored;
  }

  async #trackAppend(appending: Promise<StoredEvent[]>, count: number): Promise<StoredEvent[]> {
    this.#pending += count;
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
      this.#pending -= count;
    }
  }

  #count(reason: NotStoredReason, events: number): void {
    if (events > 0) this.#refused.inc({ reason }, events);
  }
}

function checkItem({ value, dataText, faults }: SubmissionItem, bounds: ClockBounds): CheckedSubmission {
  if (faults === undefined || faults.length === 0) return checkSubmission(value, bounds, dataText);
  // Faults of the text and of the value are reported together.
  return { faults: value === undefined ? faults : joinFaults(faults, checkSubmission(value, bounds).faults ?? []) };
}

/** The token of a batch, and the ids of its events that are already stored, by position. */
interface IdempotentBatch {
  readonly token: string | undefined;
  readonly known: ReadonlyMap<number, string>;
}
const NONE_STORED: IdempotentBatch["known"] = new Map();

/** Valid submissions and their positions in the batch. */
interface Chunk {
  readonly drafts: EventDraft[];
  readonly indexes: number[];
  /** The number and the size of all submissions, valid and invalid. */
  items: number;
  bytes: number;
}

function newChunk(): Chunk {
  return { drafts: [], indexes: [], items: 0, bytes: 0 };
}

type ChunkOutcome =
  | { readonly stored: readonly string[]; readonly indexes: readonly number[] }
  | { readonly stored?: undefined; readonly error: unknown; readonly indexes: readonly number[] };

function enriched(event: NewEvent, enricher: Enricher): NewEvent {
  const { draft, idempotencyToken } = event;
  const found = enricher.enrich(draft.raw);
  if (found === undefined) return event;
  return { draft: { ...draft, enrichment: { ...found, ...draft.enrichment } }, idempotencyToken };
}

/** Replaces an implausible time by the time of arrival; the device's own time is kept in `reported_at`. */
function withArrivalTime(now: number, draft: EventDraft): EventDraft {
  const raw = { ...draft.raw, reported_at: formatTime(draft.timestampMs) };
  return { ...draft, timestampMs: now, raw, rawText: undefined };
}

function idsOf(stored: readonly StoredEvent[]): string[] {
  return stored.map(({ id }) => id);
}

function asReplay(submitted: SubmitOutcome): SubmitOutcome {
  return submitted.kind === "stored" ? { ...submitted, replayed: true } : submitted;
}
