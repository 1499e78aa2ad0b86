import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientOptions } from "@opensearch-project/opensearch";
import { AwsSigv4Signer } from "@opensearch-project/opensearch/aws";
import serializerModule from "@opensearch-project/opensearch/lib/Serializer.js";
import type { Registry } from "prom-client";
import { parseExact } from "../../lib/exact-json.ts";
import { readSettingFile, settingFileFaults, type UnreadableSettingFile } from "../../lib/setting-file.ts";
import type { StorageSpace } from "../ports/store.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { readAwsCredentials } from "./aws-credentials.ts";
import {
  describeCause,
  describeError,
  toStoreError,
  type FailureDescription,
  type OpenSearchCause,
  type OpenSearchFailure,
} from "./opensearch-errors.ts";
import { OpenSearchMetrics } from "./opensearch-metrics.ts";

// Requests to OpenSearch: any of several addresses, credentials, retries with limits, metrics, errors of the store.

export interface OpenSearchConnection {
  readonly addresses: readonly string[];
  readonly username?: string | null | undefined;
  readonly password?: string | null | undefined;
  readonly passwordFile?: string | null | undefined;
  /** A file with a bearer token. It is read again after a refusal, so that tokens can be rotated. */
  readonly tokenFile?: string | null | undefined;
  /** Certificate authorities in PEM; default: those of Node. */
  readonly tlsCa?: string | null | undefined;
  readonly tlsCertificate?: string | null | undefined;
  readonly tlsKey?: string | null | undefined;
  /** With a region, requests are signed for AWS (SigV4). */
  readonly awsRegion?: string | null | undefined;
  readonly awsService?: "es" | "aoss" | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly retriesMax?: number | undefined;
  /** Open connections per address. */
  readonly connectionsMax?: number | undefined;
  readonly compression?: boolean | undefined;
}

export interface OpenSearchRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE" | "HEAD";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** An object is sent as JSON, a text as it is. */
  readonly body?: object | string | undefined;
  /** The body is lines of JSON. */
  readonly isLines?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Statuses that are answers, not failures. */
  readonly ignore?: readonly number[] | undefined;
}

export interface RequestKind {
  /** A label for metrics: `bulk`, `search`. */
  readonly operation: string;
  /** A query that fails by its size is refused, not unavailable, and one that takes too long is not repeated. */
  readonly isQuery?: boolean | undefined;
  /** The indices that it concerns. If one lacks a shard, further attempts wait some seconds for it: the index may be new. */
  readonly indices?: string | undefined;
}

/** What OpenSearch refuses, for all indices and for single ones. */
interface BlockList {
  readonly global?: Blocks;
  readonly indices?: Readonly<Record<string, Blocks>>;
}
type Blocks = Readonly<Record<string, { readonly levels?: readonly string[] }>>;

/** OpenSearch names the blocks of all indices, whichever were asked for. */
function refusesWrites({ global = {}, indices = {} }: BlockList, patterns: string): boolean {
  const starts = patterns.split(",").map((pattern) => pattern.replace(/\*$/, ""));
  const concerned = Object.keys(indices).filter((name) => starts.some((start) => name.startsWith(start)));
  return [global, ...concerned.map((name) => indices[name]!)].some((blocks) =>
    Object.values(blocks).some(({ levels = [] }) => levels.includes("write")),
  );
}

interface FailedSearch {
  readonly status?: number;
  readonly error?: OpenSearchCause;
}

/** One of several searches failed, while the request succeeded. */
class SearchFailed extends Error {
  readonly description: FailureDescription;
  constructor(description: FailureDescription) {
    super(description.detail);
    this.description = description;
  }
}

const RETRY_MS = 100;
const RETRY_MS_MAX = 5000;
const SHARDS_SECONDS_MAX = 6;
const RESPONSIVE_MS_MAX = 1000;
const CHECK_MS_MAX = 3000;
const TIMEOUT_SECONDS = 30;
const RETRIES_MAX = 3;
const CONNECTIONS_MAX = 32;

/** Failures that another attempt, perhaps at another node, may not meet. */
const TRANSIENT: ReadonlySet<OpenSearchFailure> = new Set(["unreachable", "overloaded", "no_shard", "timeout"]);

export class OpenSearchClient {
  readonly metrics: OpenSearchMetrics;
  readonly #connection: OpenSearchConnection;
  #client: Client;
  #credentials: string;
  readonly #closing = new AbortController();

  constructor(connection: OpenSearchConnection, registry: Registry) {
    this.#connection = connection;
    this.metrics = new OpenSearchMetrics(registry);
    this.#client = new Client(clientOptions(connection));
    this.#credentials = JSON.stringify(credentialsOf(connection));
  }

  /** Sends a request and returns the body of the answer, in which integers beyond 2^53 are bigints. */
  async send<Answer>(kind: RequestKind, request: OpenSearchRequest): Promise<Answer> {
    const startedAt = performance.now();
    try {
      return await this.#withRetries(kind, request.signal, () => this.#once(request) as Promise<Answer>);
    } finally {
      this.metrics.took(kind.operation, (performance.now() - startedAt) / 1000);
    }
  }

  /**
   * Sends several searches in one request, and again those that failed for a moment. `lines`: header and body of each. The answer
   * for an index that was removed meanwhile is null.
   */
  async searchMany<Answer>(
    kind: RequestKind,
    lines: readonly string[],
    signal?: AbortSignal,
  ): Promise<(Answer | null)[]> {
    const answers: (Answer | null | undefined)[] = Array.from({ length: lines.length });
    let pending = [...lines.keys()];
    return this.#withRetries(kind, signal, async () => {
      const { responses } = await this.send<{ responses: (Answer & FailedSearch)[] }>(kind, {
        method: "POST",
        path: "/_msearch",
        body: pending.map((nth) => lines[nth]!).join(""),
        isLines: true,
        signal,
      });
      const failed = responses.find(({ error, status }) => error !== undefined && status !== 404);
      for (const [at, nth] of pending.entries()) {
        const answer = responses[at]!;
        if (answer.error === undefined) answers[nth] = answer;
        else if (answer.status === 404) answers[nth] = null;
      }
      pending = pending.filter((nth) => answers[nth] === undefined);
      if (failed) throw new SearchFailed(describeCause(failed.error!, failed.status ?? 0));
      return answers as (Answer | null)[];
    });
  }

  async #withRetries<T>(kind: RequestKind, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const { retriesMax = RETRIES_MAX } = this.#connection;
    let shardsUntil: number | undefined;
    for (let nth = 0; ; nth++) {
      try {
        return await attempt();
      } catch (error) {
        signal?.throwIfAborted();
        if (this.#closing.signal.aborted) throw new StoreUnavailable("closed", "the store is closing");
        const description = error instanceof SearchFailed ? error.description : describeError(error);
        if (description === undefined) throw error;
        const { failure } = description;
        if (failure === "credentials" && this.#readCredentialsAgain()) {
          this.metrics.retried(kind.operation, failure);
          continue;
        }
        if (failure === "no_shard" && kind.indices !== undefined) {
          shardsUntil ??= performance.now() + SHARDS_SECONDS_MAX * 1000;
          if (performance.now() < shardsUntil) {
            this.metrics.retried(kind.operation, failure);
            await this.#shardsStart(kind.indices, signal);
            continue;
          }
        }
        const isSlowQuery = failure === "timeout" && kind.isQuery === true;
        if (!TRANSIENT.has(failure) || isSlowQuery || nth >= retriesMax) {
          this.metrics.failed(kind.operation, failure);
          // A query that takes too long is its caller's concern, unless nothing is answered at all.
          const isQuery = kind.isQuery === true && !(isSlowQuery && !(await this.#isResponsive()));
          throw toStoreError(description, error, isQuery);
        }
        this.metrics.retried(kind.operation, failure);
        await this.pause(nth, signal);
      }
    }
  }

  /** True if OpenSearch answers the simplest question at once. */
  async #isResponsive(): Promise<boolean> {
    const asking = this.#once({ method: "HEAD", path: "/", timeoutMs: RESPONSIVE_MS_MAX });
    return asking.then(
      () => true,
      () => false,
    );
  }

  /** Waits before another attempt: longer each time, and not as long as others that failed at the same moment. */
  async pause(attempt: number, signal?: AbortSignal): Promise<void> {
    const most = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** attempt);
    const signals = signal ? [signal, this.#closing.signal] : [this.#closing.signal];
    try {
      await sleep(most / 2 + (Math.random() * most) / 2, undefined, { signal: AbortSignal.any(signals) });
    } catch {
      signal?.throwIfAborted();
      throw new StoreUnavailable("closed", "the store is closing");
    }
  }

  /** Waits until these indices have all their shards, or some time. */
  async #shardsStart(indices: string, signal: AbortSignal | undefined): Promise<void> {
    const query = { wait_for_status: "yellow", timeout: `${SHARDS_SECONDS_MAX / 2}s` };
    const path = `/_cluster/health/${indices}`;
    await Promise.all([
      this.pause(0, signal),
      // If this fails, the attempt that follows does so by itself.
      this.#once({ method: "GET", path, query, signal, ignore: [404, 408] }).catch(() => undefined),
    ]);
  }

  async #once({ method, path, query, body, isLines, signal, timeoutMs, ignore }: OpenSearchRequest): Promise<unknown> {
    signal?.throwIfAborted();
    const sending = this.#client.transport.request(
      {
        method,
        path,
        ...(query && { querystring: { ...query } }),
        ...(body !== undefined && (isLines ? { bulkBody: body as string } : { body: body as object })),
      },
      { ...(timeoutMs !== undefined && { requestTimeout: timeoutMs }), ...(ignore && { ignore: [...ignore] }) },
    );
    // Returns nothing: Node takes the rejection of a promise that a listener returns for an uncaught exception.
    const abort = () => void sending.abort();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return (await sending).body;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Takes a token or password that was replaced in its file. Requests in flight end by themselves. */
  #readCredentialsAgain(): boolean {
    let found: string;
    try {
      found = JSON.stringify(credentialsOf(this.#connection));
    } catch {
      // The file is being replaced: the next refusal looks again.
      return false;
    }
    if (found === this.#credentials) return false;
    const before = this.#client;
    this.#client = new Client(clientOptions(this.#connection));
    this.#credentials = found;
    void before.close();
    return true;
  }

  /**
   * Rejects with the reason if OpenSearch does not answer, or these indices lack a shard or accept no writes. `indices` are the
   * beginnings of names, each with a `*`.
   */
  async check(indices: string, signal?: AbortSignal): Promise<void> {
    const kind = { operation: "health" };
    const ask = <Answer>(path: string, query: object = {}) =>
      this.send<Answer>(kind, {
        method: "GET",
        path: `${path}/${indices}`,
        query: { local: true, ...query },
        timeoutMs: CHECK_MS_MAX,
        signal,
      });
    const [{ status }, { blocks }] = await Promise.all([
      ask<{ status: string }>("/_cluster/health"),
      ask<{ blocks: BlockList }>("/_cluster/state/blocks", { allow_no_indices: true }),
    ]);
    if (status === "red") throw this.#unready("no_shard", indices);
    if (refusesWrites(blocks, indices)) throw this.#unready("read_only", indices);
  }

  #unready(failure: OpenSearchFailure, indices: string): Error {
    this.metrics.failed("health", failure);
    return toStoreError({ failure, detail: indices }, undefined, false);
  }

  /** The room of all nodes, and what these indices take of it. */
  async space(indices: string): Promise<StorageSpace> {
    const kind = { operation: "health" };
    const [nodes, stored] = await Promise.all([
      this.send<{ nodes: Record<string, { fs: { total: { total_in_bytes: number; available_in_bytes: number } } }> }>(
        kind,
        { method: "GET", path: "/_nodes/stats/fs" },
      ),
      this.send<{ _all: { total: { store?: { size_in_bytes: number } } } }>(kind, {
        method: "GET",
        path: `/${indices}/_stats/store`,
      }),
    ]);
    const rooms = Object.values(nodes.nodes).map(({ fs }) => fs.total);
    return {
      totalBytes: rooms.reduce((sum, room) => sum + room.total_in_bytes, 0),
      freeBytes: rooms.reduce((sum, room) => sum + room.available_in_bytes, 0),
      usedBytes: stored._all.total.store?.size_in_bytes ?? 0,
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#client.close();
  }
}

function clientOptions(connection: OpenSearchConnection): ClientOptions {
  const { addresses, timeoutSeconds = TIMEOUT_SECONDS, connectionsMax = CONNECTIONS_MAX } = connection;
  const aws = connection.awsRegion
    ? AwsSigv4Signer({
        region: connection.awsRegion,
        service: connection.awsService ?? "es",
        getCredentials: async () => readAwsCredentials(process.env),
      })
    : {};
  return {
    ...aws,
    nodes: [...addresses],
    ...credentialsOf(connection),
    ssl: tlsOf(connection),
    requestTimeout: timeoutSeconds * 1000,
    // Ours have a pause, a limit and a metric.
    maxRetries: 0,
    agent: { keepAlive: true, maxSockets: connectionsMax },
    ...(connection.compression && { compression: "gzip" as const, suggestCompression: true }),
    Serializer: ExactSerializer,
  };
}

// The package's types describe the module, its code exports the class itself.
const Serializer = serializerModule as unknown as typeof serializerModule.default;

/** Keeps every digit of large integers. */
class ExactSerializer extends Serializer {
  override deserialize(json: string): unknown {
    return parseExact(json);
  }
}

function credentialsOf({ username, password, passwordFile, tokenFile }: OpenSearchConnection) {
  if (tokenFile)
    return { headers: { authorization: `Bearer ${readSettingFile("opensearch.token_file", tokenFile).trim()}` } };
  if (!username) return {};
  return {
    auth: {
      username,
      password: passwordFile ? readSettingFile("opensearch.password_file", passwordFile).trim() : (password ?? ""),
    },
  };
}

/** The faults of the files that the settings name. */
export function openSearchFileFaults(connection: OpenSearchConnection): UnreadableSettingFile[] {
  return settingFileFaults(() => {
    credentialsOf(connection);
    tlsOf(connection);
  });
}

function tlsOf({ tlsCa, tlsCertificate, tlsKey }: OpenSearchConnection) {
  return {
    ...(tlsCa && { ca: readSettingFile("opensearch.tls_ca", tlsCa) }),
    ...(tlsCertificate && { cert: readSettingFile("opensearch.tls_certificate", tlsCertificate) }),
    ...(tlsKey && { key: readSettingFile("opensearch.tls_key", tlsKey) }),
  };
}
