import type { Thread } from "../../../lib/thread.ts";
import type { Amendment } from "../../ports/event-engine.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { readEventId } from "../../files/event-id.ts";
import { notStored } from "../../files/store-failure.ts";
import type { Arrivals } from "./arrivals.ts";
import type { AmendedDay, WriterApi } from "./journal-writer-thread.ts";

// What is found out about events after they were stored. It goes through the thread that writes, between two groups.

/** So few in one transaction that events which come meanwhile hardly wait. */
const TRANSACTION_EVENTS_MAX = 200;
const WAITING_EVENTS_MAX = 20_000;

export interface AmendingOptions {
  readonly writer: Thread<WriterApi>;
  readonly arrivals: Arrivals;
  readonly hasDay: (day: number) => boolean;
  readonly onAmend: (day: number, amended: AmendedDay) => void;
}

export class Amendments {
  readonly #options: AmendingOptions;
  #waiting = 0;

  constructor(options: AmendingOptions) {
    this.#options = options;
  }

  async amend(amendments: readonly Amendment[]): Promise<void> {
    if (this.#waiting + amendments.length > WAITING_EVENTS_MAX)
      throw new StoreUnavailable("queue_full", "too many changes of events are waiting to be stored");
    this.#waiting += amendments.length;
    try {
      const placed = amendments.flatMap((amendment) => {
        const place = readEventId(amendment.id);
        return place ? [{ ...amendment, ...place }] : [];
      });
      for (const [day, part] of Map.groupBy(placed, (item) => item.day)) {
        for (let at = 0; at < part.length; at += TRANSACTION_EVENTS_MAX)
          await this.#amendDay(day, part.slice(at, at + TRANSACTION_EVENTS_MAX));
      }
    } finally {
      this.#waiting -= amendments.length;
    }
  }

  async #amendDay(day: number, part: readonly (Amendment & { readonly seq: number })[]): Promise<void> {
    const { writer, arrivals, hasDay, onAmend } = this.#options;
    // Writing to a day that retention has removed would bring its file back.
    if (!hasDay(day)) return;
    const request = {
      day,
      seqs: part.map(({ seq }) => seq),
      ids: part.map(({ id }) => id),
      added: part.map(({ enrichment }) => JSON.stringify(enrichment)),
      textsAfter: arrivals.recentAfter,
    };
    const amended = await writer.call("amend", request).catch((error: unknown) => {
      throw notStored(error);
    });
    if (amended.count === 0) return;
    for (const { seq, text } of amended.texts) arrivals.amend(seq, text);
    onAmend(day, amended);
  }
}
