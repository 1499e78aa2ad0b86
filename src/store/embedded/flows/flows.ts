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
import { QuestionRefused, StoreUnavailable, type Asking, type FlowStore } from "../../store.ts";
import { asStoreError, isStorageFailure, noRoom } from "../failure.ts";
import { flowUnitFile, isMissing, type Layout } from "../layout.ts";
import type { Manifest } from "../manifest.ts";
import type { WithoutAsking } from "../under-way.ts";
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
  #questions = 0;
  /** Questions that were refused because of too many others. */
  refused = 0;
  #closing = false;
  #manifest: Manifest | undefined;
  readonly #layout: Layout;
  #isOpen = false;

  readonly #now: () => number;

  /** Starts the thread; it touches nothing in the folder until it is opened. */
  constructor({ dataDir, indexPrefix, restMs, log, now }: FlowsOptions) {
    this.#log = log;
    this.#now = now;
    this.#layout = { dataDir, indexPrefix };
    this.#thread = new Thread<FlowsApi>(
      new URL("./worker.ts", import.meta.url),
      { dataDir, indexPrefix, restMs } satisfies FlowsData,
      endingProcess("the thread of the flows"),
    );
  }

  /** Rejects with NewerFile where a newer version has written to a DuckDB file of the folder; changes nothing. */
  refuseNewer(): Promise<void> {
    return this.#thread.call("refuseNewer");
  }

  async open(manifest?: Manifest): Promise<void> {
    this.#manifest = manifest;
    const days = await this.#thread.call("open", this.#now());
    this.#isOpen = true;
    // A file that is there is believed until somebody asks it; an empty one holds nothing.
    const isThere = (day: number) => !isMissing(flowUnitFile(this.#layout, day));
    manifest?.settle("flows", new Map(days.filter(isThere).map((day) => [day, undefined])));
    await this.#hearNews();
  }

  /** Damage is met by whichever call comes upon it: it is told of before that call has its answer. */
  async #hearNews(): Promise<void> {
    const { days, damages } = await this.#thread.call("news");
    for (const { day, words } of damages) {
      this.#log.error({ damage: words }, SET_ASIDE);
      this.#manifest?.found("flows", day, 0);
    }
    for (const [day, rows] of days) this.#manifest?.found("flows", day, rows);
  }

  async append(rows: FlowRows, batchId: string): Promise<void> {
    if (rows.count === 0) return;
    if (this.#batches >= BATCHES_WAITING_MAX)
      throw new StoreUnavailable("queue_full", "too many batches of flows are waiting to be stored");
    this.#batches++;
    try {
      await this.#ask("append", rows, batchId);
    } finally {
      this.#batches--;
    }
  }

  list(filter: FlowFilter, order: FlowOrder, offset: number, limit: number, asking: Asking = {}) {
    return this.#question(asking, "list", filter, order, offset, limit);
  }

  topTalkers(question: TalkersQuestion, asking: Asking = {}) {
    return this.#question(asking, "topTalkers", question);
  }

  protocols(filter: FlowFilter, asking: Asking = {}) {
    return this.#question(asking, "protocols", filter);
  }

  async timeseries(question: TimeseriesQuestion, asking: Asking = {}) {
    const { filter, intervalMs } = question;
    if ((filter.toMs - filter.fromMs) / intervalMs > TIMESERIES_POINTS_MAX)
      throw new QuestionRefused("interval", `gives more than ${TIMESERIES_POINTS_MAX} points: take a longer one`);
    if (timeseriesPoints(filter.fromMs, filter.toMs, intervalMs).length === 0) return { timestamps: [], series: [] };
    return this.#question(asking, "timeseries", question);
  }

  async removeBefore(ms: number) {
    this.#manifest?.removing("flows", ms);
    return this.#ask("removeBefore", ms);
  }

  count() {
    return this.#question({}, "count");
  }

  /** Files of days that were removed or replaced since they were found or made. */
  goneFiles() {
    return this.#ask("gone");
  }

  /** Bytes that the engine holds by its own account. */
  memory() {
    return this.#ask("memory");
  }

  /** Rejects when the thread does not answer. */
  check() {
    return this.#ask("check");
  }

  /** Writes are finished before; questions are cancelled. */
  async close(): Promise<void> {
    this.#closing = true;
    if (!this.#isOpen) return this.#thread.leave();
    try {
      await this.#thread.call("close");
    } catch (error) {
      // What was acknowledged is in the units' logs, which the next start reads.
      this.#log.warn({ err: error }, "the flows could not be written out; the next start reads their logs");
    }
    await this.#thread.end();
  }

  async #question<M extends "list" | "topTalkers" | "protocols" | "timeseries" | "count">(
    { asker, signal }: Asking,
    method: M,
    ...args: WithoutAsking<Parameters<FlowsApi[M]>>
  ): Promise<Awaited<ReturnType<FlowsApi[M]>>> {
    signal?.throwIfAborted();
    const number = this.#questions++;
    const cancel = () => void this.#thread.call("cancel", number).catch(() => undefined);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await this.#ask(method, ...([{ number, asker }, ...args] as unknown as Parameters<FlowsApi[M]>));
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof StoreUnavailable && error.reason === "queue_full") this.refused++;
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async #ask<M extends keyof FlowsApi>(
    method: M,
    ...args: Parameters<FlowsApi[M]>
  ): Promise<Awaited<ReturnType<FlowsApi[M]>>> {
    if (this.#closing) throw new StoreUnavailable("closed", "the store is closing");
    try {
      const answer = await this.#thread.call(method, ...args);
      if (method !== "check" && method !== "gone") {
        await this.#hearNews().catch((error: unknown) => {
          // The thread may have ended since it answered: the next start looks at the files itself.
          if (!this.#closing) throw error;
        });
      }
      return answer;
    } catch (error) {
      if (error instanceof Error && /No space left|Read-only file system/i.test(error.message)) throw noRoom(error);
      throw isStorageFailure(error) ? noRoom(error) : asStoreError(error);
    }
  }
}
