import { StoreUnavailable } from "../ports/store-errors.ts";

// Admission of queries. Heavy queries have slots of their own, and no single client gets all of them. Quick queries, which
// read a few narrow columns, never wait for heavy ones. Full-text searches take turns in short parts, so more of them run.

/** Running queries of a lane. */
const RUNNING_MAX = { quick: 3, heavy: 3, text: 6 } as const;
/** Running queries of one client in a lane. */
const RUNNING_PER_CLIENT_MAX = 2;
/** Running and queued heavy queries of one client. */
export const HEAVY_PER_CLIENT_MAX = 16;
/** Running and queued queries of one client in all lanes. */
const PER_CLIENT_MAX = 100;
const QUEUED_MAX = 200;
/** A query that is queued for longer is refused. */
const QUEUED_MS_MAX = 10_000;
const RETRY_SECONDS = 5;

export type Lane = keyof typeof RUNNING_MAX;

/** The client of a query. Without a name it is the service itself, which waits without a limit. */
export interface LaneClient {
  readonly name?: string | undefined;
  readonly lane: Lane;
}

interface QueuedQuery {
  readonly client: LaneClient;
  readonly start: () => void;
}

export class QueryLanes {
  readonly #running: LaneClient[] = [];
  readonly #queued: QueuedQuery[] = [];

  /** Queries that were refused because of too many others. */
  refused = 0;

  get running(): number {
    return this.#running.length;
  }

  /** Waits for a slot, runs the query, and starts the next ones. */
  async take<T>(client: LaneClient, signal: AbortSignal, query: () => Promise<T>): Promise<T> {
    await this.#waitForSlot(client, signal);
    try {
      return await query();
    } finally {
      this.#running.splice(this.#running.indexOf(client), 1);
      this.#startQueued();
    }
  }

  async #waitForSlot(client: LaneClient, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#queued.length >= QUEUED_MAX) throw this.#refusal("too many queries are queued");
    if (client.name !== undefined) {
      if (client.lane === "heavy" && this.#inFlight(client.name, "heavy") >= HEAVY_PER_CLIENT_MAX) {
        throw this.#refusal(`this key has ${HEAVY_PER_CLIENT_MAX} heavy queries in flight`);
      }
      if (this.#inFlight(client.name) >= PER_CLIENT_MAX) {
        throw this.#refusal(`this key has ${PER_CLIENT_MAX} queries in flight`);
      }
    }
    if (this.#canRun(client)) {
      this.#running.push(client);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const queued = { client, start: resolve };
    this.#queued.push(queued);
    const leave = (reason: unknown) => {
      const position = this.#queued.indexOf(queued);
      if (position < 0) return;
      this.#queued.splice(position, 1);
      reject(reason as Error);
    };
    const onAbort = () => leave(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const timer =
      client.name === undefined
        ? undefined
        : setTimeout(() => leave(this.#refusal("other queries take too long")), QUEUED_MS_MAX);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #startQueued(): void {
    for (let position = 0; position < this.#queued.length;) {
      const { client, start } = this.#queued[position]!;
      if (!this.#canRun(client)) {
        position++;
        continue;
      }
      this.#queued.splice(position, 1);
      this.#running.push(client);
      start();
    }
  }

  #canRun({ lane, name }: LaneClient): boolean {
    const inLane = this.#running.filter((other) => other.lane === lane);
    if (inLane.length >= RUNNING_MAX[lane]) return false;
    if (name === undefined) return true;
    return inLane.filter((other) => other.name === name).length < RUNNING_PER_CLIENT_MAX;
  }

  /** Running and queued queries of a client, in one lane or in all. */
  #inFlight(name: string, lane?: Lane): number {
    const all = [...this.#running, ...this.#queued.map(({ client }) => client)];
    return all.filter((other) => other.name === name && (lane === undefined || other.lane === lane)).length;
  }

  #refusal(message: string): StoreUnavailable {
    this.refused++;
    return new StoreUnavailable("queue_full", `${message}: try again later`, RETRY_SECONDS);
  }
}
