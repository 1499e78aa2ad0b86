import type { Logger } from "pino";
import { endingProcess, Thread, type ThreadResult } from "../../../lib/thread.ts";
import type { FlowRows } from "../../../model/flow.ts";
import {
  TIMESERIES_POINTS_MAX,
  timeseriesPoints,
  type FlowFilter,
  type FlowOrder,
  type TalkersQuery,
  type TimeseriesQuery,
} from "../../../model/flow-query.ts";
import type { FlowEngine } from "../../ports/flow-engine.ts";
import type { QueryContext } from "../../ports/query-context.ts";
import { QueryRefused, StoreUnavailable } from "../../ports/store-errors.ts";
import { asStoreError, isStorageFailure, diskFull } from "../../files/store-failure.ts";
import { flowUnitFile, isMissing, type Layout } from "../../files/layout.ts";
import type { Manifest } from "../../sqlite/manifest.ts";
import { cancellable, type WithoutContext } from "../../queries/queries-in-flight.ts";
import type { FlowThreadApi, FlowThreadOptions } from "./flow-database-thread.ts";

// The flow store, as the rest of the service sees it. The work is done in a thread.

/** Batches in flight; more are refused, so that memory does not grow with a slow disk. */
const PENDING_BATCHES_MAX = 16;

export interface FlowDatabaseOptions extends FlowThreadOptions {
  readonly log: Logger;
  readonly now: () => number;
}

const QUARANTINED = "a day of flows cannot be read: its file was renamed, and queries leave it out";

/**
 * Starts the thread. Rejects with NewerFile if a newer version has written a DuckDB file of the folder. Changes nothing in the
 * folder before `start`.
 */
export async function openFlowDatabase(options: FlowDatabaseOptions): Promise<FlowDatabase> {
  const flows = new FlowDatabase(options);
  try {
    await flows.refuseNewer();
    return flows;
  } catch (error) {
    await flows.close();
    throw error;
  }
}

export class FlowDatabase implements FlowEngine {
  readonly #thread: Thread<FlowThreadApi>;
  readonly #log: Logger;
  #batchesInFlight = 0;
  #nextQuery = 0;
  /** Queries that were refused because of too many others. */
  refused = 0;
  #closing = false;
  #manifest: Manifest | undefined;
  readonly #layout: Layout;
  readonly #now: () => number;
  #isOpen = false;

  constructor({ dataDir, indexPrefix, idleMs, placesBytesMax, log, now }: FlowDatabaseOptions) {
    this.#log = log;
    this.#now = now;
    this.#layout = { dataDir, indexPrefix };
    this.#thread = new Thread<FlowThreadApi>(
      new URL("./flow-database-thread.ts", import.meta.url),
      { dataDir, indexPrefix, idleMs, placesBytesMax } satisfies FlowThreadOptions,
      endingProcess("the thread of the flows"),
    );
  }

  refuseNewer(): Promise<void> {
    return this.#thread.call("refuseNewer");
  }

  async start(manifest?: Manifest): Promise<void> {
    this.#manifest = manifest;
    const days = await this.#thread.call("open", this.#now());
    this.#isOpen = true;
    // An existing file counts as present until a query opens it; an empty one has no rows.
    const isPresent = (day: number) => !isMissing(flowUnitFile(this.#layout, day));
    manifest?.settle("flows", new Map(days.filter(isPresent).map((day) => [day, undefined])));
    await this.#takeReports();
  }

  /** Passes on the thread's reports about days. Damage is logged before the call that met it returns. */
  async #takeReports(): Promise<void> {
    const { days, damages } = await this.#thread.call("takeReports");
    for (const { day, reason } of damages) {
      this.#log.error({ damage: reason }, QUARANTINED);
      this.#manifest?.found("flows", day, 0);
    }
    for (const [day, rows] of days) this.#manifest?.found("flows", day, rows);
  }

  async append(rows: FlowRows, batchId: string): Promise<void> {
    if (rows.count === 0) return;
    if (this.#batchesInFlight >= PENDING_BATCHES_MAX)
      throw new StoreUnavailable("queue_full", "too many batches of flows are in flight: try again later");
    this.#batchesInFlight++;
    try {
      await this.#call("append", rows, batchId);
    } finally {
      this.#batchesInFlight--;
    }
  }

  list(filter: FlowFilter, order: FlowOrder, offset: number, limit: number, context: QueryContext = {}) {
    return this.#query(context, "list", filter, order, offset, limit);
  }

  /** Days that have rows, with their number. */
  days() {
    return this.#call("days");
  }

  /** The rows of a day after one sequence number and up to another. */
  span(day: number, after: number, upTo: number) {
    return this.#call("span", day, after, upTo);
  }

  topTalkers(request: TalkersQuery, context: QueryContext = {}) {
    return this.#query(context, "topTalkers", request);
  }

  protocols(filter: FlowFilter, context: QueryContext = {}) {
    return this.#query(context, "protocols", filter);
  }

  async timeseries(request: TimeseriesQuery, context: QueryContext = {}) {
    const { filter, intervalMs, shiftMs = 0 } = request;
    if ((filter.toMs - filter.fromMs) / intervalMs > TIMESERIES_POINTS_MAX)
      throw new QueryRefused("interval", `would make more than ${TIMESERIES_POINTS_MAX} points: use a longer one`);
    if (timeseriesPoints(filter.fromMs + shiftMs, filter.toMs + shiftMs, intervalMs).length === 0)
      return { timestamps: [], series: [] };
    return this.#query(context, "timeseries", request);
  }

  async removeBefore(ms: number) {
    this.#manifest?.removing("flows", ms);
    return this.#call("removeBefore", ms);
  }

  count() {
    return this.#query({}, "count");
  }

  /** Files of days that were removed or replaced while the store was open. */
  goneFiles() {
    return this.#call("gone");
  }

  /** The bytes that DuckDB reports as used. */
  memory() {
    return this.#call("memory");
  }

  /** Rejects when the thread does not answer. */
  check() {
    return this.#call("check");
  }

  /** Completes writes and cancels queries. */
  async close(): Promise<void> {
    this.#closing = true;
    if (!this.#isOpen) return this.#thread.leave();
    try {
      await this.#thread.call("close");
    } catch (error) {
      // Everything acknowledged is in the logs of the days, which the next start reads.
      this.#log.warn({ err: error }, "flows were not checkpointed; the next start reads their logs");
    }
    await this.#thread.end();
  }

  async #query<M extends "list" | "topTalkers" | "protocols" | "timeseries" | "count">(
    { client, signal }: QueryContext,
    method: M,
    ...args: WithoutContext<Parameters<FlowThreadApi[M]>>
  ): Promise<ThreadResult<ReturnType<FlowThreadApi[M]>>> {
    const number = this.#nextQuery++;
    try {
      return await cancellable(
        signal,
        () => this.#thread.call("cancel", number),
        () => this.#call(method, ...([{ number, client }, ...args] as unknown as Parameters<FlowThreadApi[M]>)),
      );
    } catch (error) {
      if (error instanceof StoreUnavailable && error.reason === "queue_full") this.refused++;
      throw error;
    }
  }

  async #call<M extends keyof FlowThreadApi>(
    method: M,
    ...args: Parameters<FlowThreadApi[M]>
  ): Promise<ThreadResult<ReturnType<FlowThreadApi[M]>>> {
    if (this.#closing) throw new StoreUnavailable("closed", "the store is closing");
    try {
      const answer = await this.#thread.call(method, ...args);
      if (method !== "check" && method !== "gone") {
        await this.#takeReports().catch((error: unknown) => {
          // The thread may have ended since it answered; the next start checks the files itself.
          if (!this.#closing) throw error;
        });
      }
      return answer;
    } catch (error) {
      if (error instanceof Error && /No space left|Read-only file system/i.test(error.message)) throw diskFull(error);
      throw isStorageFailure(error) ? diskFull(error) : asStoreError(error);
    }
  }
}
