import type { OpenSearchClient } from "./opensearch-client.ts";
import { describeCause, toStoreError, type OpenSearchCause, type OpenSearchFailure } from "./opensearch-errors.ts";

// Creates documents in bulk. OpenSearch decides on each document alone, and a request whose answer was lost may have been
// executed: the id of a document derives from its content's origin, so that a repeated creation finds it and changes nothing.

export interface NewDocument {
  readonly index: string;
  /** Of these characters only: letters, digits, - and _. */
  readonly id: string;
  /** JSON on one line. */
  readonly text: string;
}

export type CreateOutcome =
  | { readonly status: "stored"; readonly seqNo: number; readonly primaryTerm: number }
  /** An earlier attempt, or another node, has stored it. */
  | { readonly status: "duplicate" }
  /** OpenSearch will never take it as it is. */
  | { readonly status: "refused"; readonly reason: OpenSearchFailure; readonly detail: string };

export interface BulkCreateOptions {
  /** A label for metrics: `flows`, `events`. */
  readonly kind: string;
  readonly signal?: AbortSignal | undefined;
  /** Answers once searches find the documents. Without it they are durable, and found after the next refresh. */
  readonly isVisible?: boolean | undefined;
}

const REQUEST_CHARACTERS_MAX = 5_000_000;
const REQUEST_DOCUMENTS_MAX = 5000;
/** Requests of one call that run at the same time. */
const REQUESTS_MAX = 2;
/** Attempts for documents that OpenSearch was too busy for. */
const ATTEMPTS_MAX = 6;
/** How long OpenSearch waits for a primary shard that is not there. Its own default is a minute. */
export const SHARD_SECONDS_MAX = 4;
/** Attempts for documents without a primary shard. That of a new day may take seconds on a busy cluster. */
const SHARD_ATTEMPTS_MAX = 4;

const RETRIED: ReadonlySet<OpenSearchFailure> = new Set(["overloaded", "no_shard", "timeout"]);
/** Failures of the index, not of a document: they concern whatever comes after as well. */
const OF_INDEX: ReadonlySet<OpenSearchFailure> = new Set([...RETRIED, "read_only", "index_closed", "credentials"]);

interface ItemAnswer {
  readonly status: number;
  readonly error?: OpenSearchCause;
  readonly _seq_no?: number;
  readonly _primary_term?: number;
}

/**
 * Stores documents, each once however often it is sent. The outcomes are in the order of the documents. Rejects with
 * StoreUnavailable if some could not be stored now; others may have been stored.
 */
export async function createDocuments(
  client: OpenSearchClient,
  documents: readonly NewDocument[],
  options: BulkCreateOptions,
): Promise<CreateOutcome[]> {
  const outcomes: CreateOutcome[] = Array.from({ length: documents.length });
  const chunks = chunksOf(documents);
  const worker = async () => {
    for (let chunk = chunks.next(); !chunk.done; chunk = chunks.next())
      await createChunk(client, documents, chunk.value, outcomes, options);
  };
  const results = await Promise.allSettled(Array.from({ length: REQUESTS_MAX }, worker));
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
  return outcomes;
}

/** Positions of documents that fit into one request. */
function* chunksOf(documents: readonly NewDocument[]): Generator<number[]> {
  let chunk: number[] = [];
  let characters = 0;
  for (const [position, { text }] of documents.entries()) {
    if (
      chunk.length >= REQUEST_DOCUMENTS_MAX ||
      (chunk.length > 0 && characters + text.length > REQUEST_CHARACTERS_MAX)
    ) {
      yield chunk;
      chunk = [];
      characters = 0;
    }
    chunk.push(position);
    characters += text.length;
  }
  if (chunk.length > 0) yield chunk;
}

async function createChunk(
  client: OpenSearchClient,
  documents: readonly NewDocument[],
  positions: readonly number[],
  outcomes: CreateOutcome[],
  options: BulkCreateOptions,
): Promise<void> {
  const { kind } = options;
  let pending = positions;
  for (let attempt = 0; pending.length > 0; attempt++) {
    const items = await sendChunk(client, documents, pending, options);
    const again: number[] = [];
    const counts = { stored: 0, duplicate: 0, refused: 0, retried: 0 };
    for (const [nth, position] of pending.entries()) {
      const { status, error, _seq_no: seqNo = -1, _primary_term: primaryTerm = 0 } = items[nth]!.create;
      if (status === 409) {
        outcomes[position] = { status: "duplicate" };
        counts.duplicate++;
        continue;
      }
      if (error === undefined) {
        outcomes[position] = { status: "stored", seqNo, primaryTerm };
        counts.stored++;
        continue;
      }
      const description = describeCause(error, status);
      const { failure: reason, detail } = description;
      if (RETRIED.has(reason) && attempt + 1 < (reason === "no_shard" ? SHARD_ATTEMPTS_MAX : ATTEMPTS_MAX)) {
        client.metrics.retried("bulk", reason);
        again.push(position);
        counts.retried++;
        continue;
      }
      client.metrics.failed("bulk", reason);
      if (OF_INDEX.has(reason)) throw toStoreError(description, error, false);
      outcomes[position] = { status: "refused", reason, detail };
      counts.refused++;
    }
    for (const [outcome, count] of Object.entries(counts))
      client.metrics.documents(kind, outcome as keyof typeof counts, count);
    pending = again;
    if (pending.length > 0) await client.pause(attempt, options.signal);
  }
}

async function sendChunk(
  client: OpenSearchClient,
  documents: readonly NewDocument[],
  positions: readonly number[],
  { signal, isVisible }: BulkCreateOptions,
): Promise<readonly { readonly create: ItemAnswer }[]> {
  const lines = positions.map((position) => {
    const { index, id, text } = documents[position]!;
    return `{"create":{"_index":"${index}","_id":"${id}"}}\n${text}\n`;
  });
  const { items } = await client.send<{ items: { create: ItemAnswer }[] }>(
    { operation: "bulk" },
    {
      method: "POST",
      path: "/_bulk",
      query: {
        filter_path: "items.*.status,items.*.error,items.*._seq_no,items.*._primary_term",
        timeout: `${SHARD_SECONDS_MAX}s`,
        ...(isVisible && { refresh: "wait_for" }),
      },
      body: lines.join(""),
      isLines: true,
      signal,
    },
  );
  return items;
}
