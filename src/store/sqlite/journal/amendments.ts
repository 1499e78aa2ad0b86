import type { Thread } from "../../../lib/thread.ts";
import type { Amendment } from "../../ports/event-engine.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { readEventId } from "../../files/event-id.ts";
import { notStored } from "../../files/store-failure.ts";
import type { Arrivals } from "./arrivals.ts";
import type { AmendedDay, WriterApi } from "./journal-writer-thread.ts";

// Additions to the enrichment of stored events. The writer's thread commits them between two groups of new events.

/** Small enough that new events hardly wait for the transaction. */
const TRANSACTION_EVENTS_MAX = 200;
const QUEUED_EVENTS_MAX = 20_000;

export interface AmendmentOptions {
  readonly writer: Thread<WriterApi>;
  readonly arrivals: Arrivals;
  readonly hasDay: (day: number) => boolean;
  readonly onAmend: (day: number, amended: AmendedDay) => void;
}

export class Amendments {
  readonly #options: AmendmentOptions;
  #queued = 0;

  constructor(options: AmendmentOptions) {
    this.#options = options;
  }

  async amend(amendments: readonly Amendment[]): Promise<void> {
    if (this.#queued + amendments.length > QUEUED_EVENTS_MAX)
      throw new StoreUnavailable("queue_full", "too many amendments are waiting to be stored");
    this.#queued += amendments.length;
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
      this.#queued -= amendments.length;
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
