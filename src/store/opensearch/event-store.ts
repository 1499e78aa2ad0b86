import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS, formatTime, startOfDay } from "../../lib/time.ts";
import type { Event } from "../../model/event.ts";
import { readEventId } from "../files/event-id.ts";
import { amendedText, eventText } from "../files/event-text.ts";
import type { Amendment, NewEvent, StoredEvent } from "../ports/event-engine.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { createDocuments, SHARD_SECONDS_MAX, type NewDocument } from "./bulk.ts";
import { dailyIndexName } from "./daily-index.ts";
import { documentIds, eventIdMaker, tokenDocumentId, tokenEventId } from "./event-document-id.ts";
import { documentText, tokenTerm, type EventDocument, type EventSource } from "./event-documents.ts";
import { indexLists } from "./event-search.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";
import { describeCause, toStoreError, type OpenSearchCause } from "./opensearch-errors.ts";
import type { Logger } from "pino";

// Writes events and reads them by id.

export const TOKEN_MS = DAY_MS;
/** Attempts to store an event whose id is taken. */
const IDS_MAX = 10;
/** Attempts to amend an event that others amend at the same time. */
const AMEND_ATTEMPTS_MAX = 20;
const AMENDED_AT_ONCE = 500;
/** Events that are being stored or amended; more are refused, so that memory does not grow with a slow cluster. */
const PENDING_EVENTS_MAX = 50_000;
const MAPPING_RETRY_SECONDS = 30;

/** A document as `_mget` returns it. */
export interface StoredDocument {
  readonly _index: string;
  readonly _id: string;
  readonly found?: boolean;
  readonly _seq_no?: number;
  readonly _primary_term?: number;
  readonly _source?: EventSource;
  readonly error?: OpenSearchCause;
}

interface Pending {
  readonly event: NewEvent;
  readonly position: number;
  attempt: number;
  id: string;
  document: EventDocument;
  isBare: boolean;
}

export interface EventStoreOptions {
  readonly client: OpenSearchClient;
  readonly name: string;
  readonly now: () => number;
  readonly log: Logger;
}

export class EventStore {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #now: () => number;
  readonly #log: Logger;
  readonly #newId: ReturnType<typeof eventIdMaker>;
  #pending = 0;

  constructor({ client, name, now, log }: EventStoreOptions) {
    this.#client = client;
    this.#name = name;
    this.#now = now;
    this.#log = log;
    this.#newId = eventIdMaker(now);
  }

  append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    return this.#limited(events.length, () => this.#append(events));
  }

  async #limited<T>(events: number, work: () => Promise<T>): Promise<T> {
    if (this.#pending > 0 && this.#pending + events > PENDING_EVENTS_MAX)
      throw new StoreUnavailable("queue_full", "too many events are being stored: try again later");
    this.#pending += events;
    try {
      return await work();
    } finally {
      this.#pending -= events;
    }
  }

  async #append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    const stored: StoredEvent[] = Array.from({ length: events.length });
    let pending = events.map((event, position) => this.#prepare(event, position, 0));
    const refreshed = new Set<string>();
    while (pending.length > 0) {
      const documents = pending.map((item) => this.#newDocument(item));
      const outcomes = await createDocuments(this.#client, documents, { kind: "events", isVisible: true });
      const taken: Pending[] = [];
      const again: Pending[] = [];
      for (const [nth, item] of pending.entries()) {
        const outcome = outcomes[nth]!;
        if (outcome.status === "stored") stored[item.position] = { id: item.id, text: item.document.text };
        else if (outcome.status === "duplicate") taken.push(item);
        else again.push(this.#withoutTerms(item, documents[nth]!.index, outcome.detail));
      }
      const owners = await this.#read(taken.map((item) => this.#newDocument(item)));
      for (const [nth, item] of taken.entries()) {
        const owner = owners[nth];
        if (owner !== undefined && this.#isSame(item, owner)) {
          refreshed.add(owner._index);
          const { text } = owner._source!;
          stored[item.position] = { id: (parseExact(text) as Event).id, text };
        } else again.push(this.#prepare(item.event, item.position, item.attempt + 1));
      }
      pending = again;
    }
    // What an attempt before this one stored may still be invisible.
    if (refreshed.size > 0) await this.#refresh([...refreshed]);
    return stored;
  }

  #prepare(event: NewEvent, position: number, attempt: number): Pending {
    if (attempt >= IDS_MAX) throw new StoreUnavailable("failed", "no free id was found for an event");
    const { draft, idempotencyToken: token } = event;
    const made = this.#newId(startOfDay(draft.timestampMs));
    const { arrivedMs } = made;
    const id = token === undefined ? made.id : tokenEventId(arrivedMs, startOfDay(draft.timestampMs), token, attempt);
    const { timestampMs, rawText: _rawText, ...rest } = draft;
    const stored = { id, ...rest, timestamp: formatTime(timestampMs) };
    const document = { text: eventText(id, draft), event: stored, arrivedMs, token };
    return { event, position, attempt, id, document, isBare: false };
  }

  #newDocument({ id, event, document, isBare }: Pending): NewDocument {
    return {
      index: dailyIndexName(this.#name, event.draft.timestampMs),
      id: event.idempotencyToken === undefined ? id : tokenDocumentId(id),
      text: documentText(document, isBare),
    };
  }

  /** A document that OpenSearch refuses is stored as its text alone. If it refuses that too, the index has other mappings. */
  #withoutTerms(item: Pending, index: string, detail: string): Pending {
    if (item.isBare) {
      this.#log.error({ index, detail }, "OpenSearch refuses events: the index was not created from the template");
      const message = `the index ${index} has other mappings than the template ${this.#name} (${detail})`;
      throw new StoreUnavailable("failed", message, MAPPING_RETRY_SECONDS);
    }
    this.#log.warn(
      { index, detail, id: item.id },
      "OpenSearch refuses the terms of an event: it is stored without them",
    );
    return { ...item, isBare: true };
  }

  /** True if the document is what this call, or an earlier attempt with the same token, has stored. */
  #isSame({ event, document }: Pending, { _source }: StoredDocument): boolean {
    const { idempotencyToken: token } = event;
    if (token === undefined) return _source!.text === document.text;
    return _source!.token === tokenTerm(token) && _source!.arrived > this.#now() - TOKEN_MS;
  }

  async #refresh(indices: readonly string[]): Promise<void> {
    for (const names of indexLists(indices)) {
      const query = { ignore_unavailable: true };
      await this.#client.send({ operation: "refresh" }, { method: "POST", path: `/${names}/_refresh`, query });
    }
  }

  async get(id: string): Promise<string | undefined> {
    return (await this.find([id])).get(id)?._source!.text;
  }

  /** The documents of these events, as they are now. */
  async find(ids: readonly string[]): Promise<Map<string, StoredDocument>> {
    const found = new Map<string, StoredDocument>();
    const wanted = ids.flatMap((id) => {
      const place = readEventId(id);
      if (!place) return [];
      const index = dailyIndexName(this.#name, place.day);
      return documentIds(id).map((documentId) => ({ index, id: documentId }));
    });
    for (const document of await this.#read(wanted)) {
      if (!document) continue;
      const { id } = parseExact(document._source!.text) as Event;
      if (ids.includes(id)) found.set(id, document);
    }
    return found;
  }

  /** Reads documents by their ids, also those that searches do not see yet. */
  async #read(wanted: readonly { index: string; id: string }[]): Promise<(StoredDocument | undefined)[]> {
    if (wanted.length === 0) return [];
    const docs = wanted.map(({ index, id }) => ({ _index: index, _id: id }));
    const answer = await this.#client.send<{ docs: StoredDocument[] }>(
      { operation: "get" },
      { method: "POST", path: "/_mget", body: { docs } },
    );
    return answer.docs.map((document) => {
      if (document.found) return document;
      if (document.error && document.error.type !== "index_not_found_exception")
        throw toStoreError(describeCause(document.error, 500), document.error, false);
      return undefined;
    });
  }

  amend(amendments: readonly Amendment[]): Promise<void> {
    return this.#limited(amendments.length, () => this.#amend(amendments));
  }

  async #amend(amendments: readonly Amendment[]): Promise<void> {
    const byId = new Map<string, Amendment["enrichment"]>();
    for (const { id, enrichment } of amendments) byId.set(id, { ...byId.get(id), ...enrichment });
    const ids = [...byId.keys()];
    for (let at = 0; at < ids.length; at += AMENDED_AT_ONCE) {
      let open = ids.slice(at, at + AMENDED_AT_ONCE);
      for (let attempt = 0; open.length > 0; attempt++) {
        if (attempt >= AMEND_ATTEMPTS_MAX)
          throw new StoreUnavailable("failed", "other changes of the same events do not come to an end");
        if (attempt > 0) await this.#client.pause(0);
        open = await this.#amendOnce(open, byId);
      }
    }
  }

  /** Returns the events that somebody else has changed meanwhile. */
  async #amendOnce(ids: readonly string[], byId: ReadonlyMap<string, Amendment["enrichment"]>): Promise<string[]> {
    const found = [...(await this.find(ids))];
    if (found.length === 0) return [];
    const lines = found.map(([id, { _index, _id, _seq_no: seqNo, _primary_term: primaryTerm, _source }]) => {
      const { text, token, arrived, first_seq: firstSeq = seqNo } = _source!;
      const action = { index: { _index, _id, if_seq_no: seqNo, if_primary_term: primaryTerm } };
      const changed = amendedText(text, byId.get(id)!);
      const event = parseExact(changed) as Event;
      const document = { text: changed, event, arrivedMs: arrived, firstSeq, token };
      return `${JSON.stringify(action)}\n${documentText(document)}\n`;
    });
    const { items } = await this.#client.send<{
      items: { index: { status: number; error?: OpenSearchCause } }[];
    }>(
      { operation: "amend" },
      {
        method: "POST",
        path: "/_bulk",
        query: {
          refresh: "wait_for",
          timeout: `${SHARD_SECONDS_MAX}s`,
          require_alias: false,
          filter_path: "items.*.status,items.*.error",
        },
        body: lines.join(""),
        isLines: true,
      },
    );
    return found.flatMap(([id], nth) => {
      const { status, error } = items[nth]!.index;
      if (!error) return [];
      const description = describeCause(error, status);
      if (status === 409) {
        this.#client.metrics.retried("amend", "other");
        return [id];
      }
      // Retention has removed the day.
      if (error.type === "index_not_found_exception") return [];
      this.#client.metrics.failed("amend", description.failure);
      throw toStoreError(description, error, false);
    });
  }
}
