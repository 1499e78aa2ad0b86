import { errors } from "@opensearch-project/opensearch";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";

// What OpenSearch answers when it cannot do something, in the terms of the store's callers.

/** A label for metrics. */
export type OpenSearchFailure =
  | "unreachable"
  | "timeout"
  | "overloaded"
  | "read_only"
  | "no_shard"
  | "index_closed"
  | "mapping"
  | "credentials"
  | "too_large"
  | "other";

export interface FailureDescription {
  readonly failure: OpenSearchFailure;
  /** What OpenSearch says, without addresses or credentials. */
  readonly detail: string;
}

/** The error of a request, or of one item of a bulk request. */
export interface OpenSearchCause {
  readonly type?: string;
  readonly reason?: string;
  readonly index?: string;
  readonly root_cause?: readonly OpenSearchCause[];
  readonly caused_by?: OpenSearchCause;
  readonly failed_shards?: readonly { readonly reason?: OpenSearchCause }[];
}

const DETAIL_CHARACTERS_MAX = 300;

/** By the type of a cause; the first that is found counts, from the outermost cause to the innermost. */
const BY_TYPE: Readonly<Record<string, OpenSearchFailure>> = {
  cluster_block_exception: "read_only",
  rejected_execution_exception: "overloaded",
  open_search_rejected_execution_exception: "overloaded",
  circuit_breaking_exception: "overloaded",
  too_many_buckets_exception: "too_large",
  too_many_clauses: "too_large",
  too_many_nested_clauses: "too_large",
  task_cancelled_exception: "timeout",
  process_cluster_event_timeout_exception: "timeout",
  no_shard_available_action_exception: "no_shard",
  unavailable_shards_exception: "no_shard",
  // It is being created, or was removed a moment ago.
  index_not_found_exception: "no_shard",
  cluster_manager_not_discovered_exception: "no_shard",
  master_not_discovered_exception: "no_shard",
  node_disconnected_exception: "no_shard",
  index_closed_exception: "index_closed",
  mapper_parsing_exception: "mapping",
  strict_dynamic_mapping_exception: "mapping",
  illegal_argument_exception: "mapping",
  query_shard_exception: "mapping",
  security_exception: "credentials",
};

/** The cause of a status without a body that says more, such as that of a proxy. */
const BY_STATUS: Readonly<Record<number, OpenSearchFailure>> = {
  401: "credentials",
  403: "credentials",
  413: "too_large",
  429: "overloaded",
  502: "no_shard",
  503: "no_shard",
  504: "timeout",
};

export function describeCause(cause: OpenSearchCause, status: number): FailureDescription {
  const chain = [...causesOf(cause)];
  const known = chain.find(({ type }) => type !== undefined && type in BY_TYPE);
  const failure = known ? BY_TYPE[known.type!]! : (BY_STATUS[status] ?? "other");
  const { type = "unknown", reason = "", index = "" } = known ?? chain[0] ?? {};
  const place = failure === "mapping" && !reason.includes(index) ? `${index}: ` : "";
  return { failure, detail: `${place}${type}: ${reason}`.slice(0, DETAIL_CHARACTERS_MAX) };
}

function* causesOf(cause: OpenSearchCause): Generator<OpenSearchCause> {
  yield cause;
  for (const root of cause.root_cause ?? []) yield root;
  for (const { reason } of cause.failed_shards ?? []) if (reason) yield* causesOf(reason);
  if (cause.caused_by) yield* causesOf(cause.caused_by);
}

/** Describes any error of the client. Undefined for an error that is not the engine's: a bug. */
export function describeError(error: unknown): FailureDescription | undefined {
  if (error instanceof errors.TimeoutError) return { failure: "timeout", detail: "no answer in time" };
  if (error instanceof errors.ConnectionError || error instanceof errors.NoLivingConnectionsError)
    return { failure: "unreachable", detail: errorCode(error) };
  if (error instanceof errors.ResponseError) {
    const body = error.body as { error?: OpenSearchCause | string } | string | undefined;
    const cause = typeof body === "object" ? body.error : undefined;
    return describeCause(
      typeof cause === "object" ? cause : { type: `status ${error.statusCode}`, reason: cause ?? "" },
      error.statusCode ?? 0,
    );
  }
  return error instanceof errors.OpenSearchClientError ? { failure: "other", detail: error.name } : undefined;
}

/** The system's code, such as ECONNREFUSED; the message may contain the address. */
function errorCode(error: Error): string {
  const { cause, message } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? /\bE[A-Z]{3,}\b|certificate|self.signed/i.exec(message)?.[0] ?? "no connection";
}

const SECONDS_TO_RETRY: Readonly<Partial<Record<OpenSearchFailure, number>>> = {
  overloaded: 2,
  read_only: 30,
  index_closed: 30,
  mapping: 30,
  credentials: 30,
};
const RETRY_SECONDS = 5;

const MESSAGES: Readonly<Record<OpenSearchFailure, string>> = {
  unreachable: "OpenSearch cannot be reached at any of opensearch.addresses",
  timeout: "OpenSearch did not answer in time",
  overloaded: "OpenSearch is overloaded",
  read_only: "OpenSearch does not accept writes: its disk may be full",
  no_shard: "a part of the data has no copy on a running OpenSearch node",
  index_closed: "an index is closed: open it again",
  mapping: "an index has other mappings than those of its template",
  credentials: "OpenSearch refuses the credentials of opensearch",
  too_large: "OpenSearch refuses a request of this size",
  other: "OpenSearch could not answer",
};

/** What the store's callers get. `isQuery`: the size of a query is its caller's choice. */
export function toStoreError({ failure, detail }: FailureDescription, cause: unknown, isQuery: boolean): Error {
  if (failure === "too_large" && isQuery)
    return new QueryRefused("from", "covers too much data: narrow the time range");
  if (failure === "timeout" && isQuery) return new QueryRefused("from", "took too long: narrow the time range");
  const reason = failure === "overloaded" ? "queue_full" : failure === "read_only" ? "disk_full" : "failed";
  const summary = MESSAGES[failure];
  const message = `${summary} (${detail})`;
  return new StoreUnavailable(reason, message, SECONDS_TO_RETRY[failure] ?? RETRY_SECONDS, { cause, summary });
}
