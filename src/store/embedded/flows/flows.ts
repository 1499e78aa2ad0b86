import type { Logger } from "pino";
import { endingProcess, Thread } from "../../../lib/thread.ts";
import type { FlowRows } from "../../../model/flow.ts";
import {
  TIMESERIES_POINTS_MAX,
  timeseriesPoints,
  type FlowFilter,
  type FlowOrder,
  type TalkersQuestion,
  type TimeseriesQuestion,
} from "../../../model/flow-question.ts";
import { QuestionRefused, StoreUnavailable, type FlowStore } from "../../store.ts";
import { asStoreError, isStorageFailure, noRoom } from "../failure.ts";
import type { FlowsApi, FlowsData } from "./worker.ts";

// Flows as the rest of the service sees them; the work is done in a thread.

/** Batches that wait to be stored; more are refused, so that memory does not grow with a slow disk. */
const BATCHES_WAITING_MAX = 16;

export interface FlowsOptions extends FlowsData {
  readonly log: Logger;
  readonly now: () => number;
}

const SET_ASIDE = "a day of flows could not be read; its file was kept under another name and is not asked any more";

export class Flows implements FlowStore {
  readonly #thread: Thread<FlowsApi>;
  readonly #log: Logger;
  #batches = 0;
  #closing = false;

  private constructor({ dataDir, indexPrefix, restMs, log }: FlowsOptions) {
    this.#log = log;
    this.#thread = new Thread<FlowsApi>(
      new URL("./worker.ts", import.meta.url),
      { dataDir, indexPrefix, restMs } satisfies FlowsData,
      endingProcess("the thread of the flows"),
    );
  }

  static async open(options: FlowsOptions): Promise<Flows> {
    const flows = new Flows(options);
    try {
      const { damages } = await flows.#thread.call("open", options.now());
      flows.#tell(damages);
      return flows;
    } catch (error) {
      await flows.#thread.end();
      throw error;
    }
  }

  async append(rows: FlowRows, batchId: string): Promise<void> {
    if (rows.count === 0) return;
    if (this.#batches >= BATCHES_WAITING_MAX)
      throw new StoreUnavailable("queue_full", "too many batches of flows are waiting to be stored");
    this.#batches++;
    try {
      const { damages } = await this.#ask("append", rows, batchId);
      this.#tell(damages);
    } finally {
      this.#batches--;
    }
  }

  list(filter: FlowFilter, order: FlowOrder, offset: number, limit: number) {
    return this.#ask("list", filter, order, offset, limit);
  }

  topTalkers(question: TalkersQuestion) {
    return this.#ask("topTalkers", question);
  }

  protocols(filter: FlowFilter) {
    return this.#ask("protocols", filter);
  }

  async timeseries(question: TimeseriesQuestion) {
    const { filter, intervalMs } = question;
    if ((filter.toMs - filter.fromMs) / intervalMs > TIMESERIES_POINTS_MAX)
      throw new QuestionRefused("interval", `gives more than ${TIMESERIES_POINTS_MAX} points: take a longer one`);
    if (timeseriesPoints(filter.fromMs, filter.toMs, intervalMs).length === 0) return { timestamps: [], series: [] };
    return this.#ask("timeseries", question);
  }

  removeBefore(ms: number) {
    return this.#ask("removeBefore", ms);
  }

  count() {
    return this.#ask("count");
  }

  /** Bytes that the engine holds by its own account. */
  memory() {
    return this.#ask("memory");
  }

  /** Rejects when the thread does not answer. */
  check() {
    return this.#ask("check");
  }

  /** Calls that are under way are answered before. */
  async close(): Promise<void> {
    this.#closing = true;
    try {
      await this.#thread.call("close");
    } catch (error) {
      // What was acknowledged is in the units' logs, which the next start reads.
      this.#log.warn({ err: error }, "the flows could not be written out; the next start reads their logs");
    }
    await this.#thread.end();
  }

  #tell(damages: readonly string[]): void {
    for (const damage of damages) this.#log.error({ damage }, SET_ASIDE);
  }

  async #ask<M extends keyof FlowsApi>(
    method: M,
    ...args: Parameters<FlowsApi[M]>
  ): Promise<Awaited<ReturnType<FlowsApi[M]>>> {
    if (this.#closing) throw new StoreUnavailable("closed", "the store is closing");
    try {
      return await this.#thread.call(method, ...args);
    } catch (error) {
      if (error instanceof Error && /No space left|Read-only file system/i.test(error.message)) throw noRoom(error);
      throw isStorageFailure(error) ? noRoom(error) : asStoreError(error);
    }
  }
}
