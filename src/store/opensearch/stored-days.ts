import { DAY_MS } from "../../lib/time.ts";
import type { TimeRange } from "../../model/query.ts";
import type { MissingDay } from "../ports/store.ts";
import { dayOfIndex } from "./daily-index.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";

// The daily indices of one kind: how many rows each has, and whether it can be read.

/** Every answer about stored rows asks whether its days can be read. */
const FRESH_MS = 2000;

interface StoredDay {
  readonly index: string;
  readonly day: number;
  readonly isClosed: boolean;
  readonly rows: number;
  /** Why the day cannot be read; undefined if it can. */
  readonly why: string | undefined;
}

/** Indices of days. */
export interface UnreadableDays {
  readonly indices: ReadonlySet<string>;
  /** Those that are not closed. */
  readonly open: readonly string[];
}

export class StoredDays {
  readonly #client: OpenSearchClient;
  readonly #kind: MissingDay["kind"];
  readonly #name: string;
  /** Rows of each day when it could be read last. */
  readonly #known = new Map<number, number>();
  #reading: Promise<readonly StoredDay[]> | undefined;
  #readAt = -Infinity;
  #mayLackDays = false;

  constructor(client: OpenSearchClient, kind: MissingDay["kind"], name: string) {
    this.#client = client;
    this.#kind = kind;
    this.#name = name;
  }

  async rowsBefore(beforeMs: number): Promise<{ rows: number; total: number }> {
    const days = await this.#read();
    const sum = (of: readonly StoredDay[]) => of.reduce((all, { rows }) => all + rows, 0);
    return { rows: sum(days.filter(({ day }) => day + DAY_MS <= beforeMs)), total: sum(days) };
  }

  /** True if there was a day that could not be read when somebody looked last. */
  get mayLackDays(): boolean {
    return this.#mayLackDays;
  }

  /** The days that cannot be read now. For a moment `missing` returns the same, so that it describes answers without them. */
  async unreadable(): Promise<UnreadableDays> {
    this.#readAt = -Infinity;
    const days = (await this.#recent()).filter(({ why }) => why !== undefined);
    return {
      indices: new Set(days.map(({ index }) => index)),
      open: days.flatMap(({ index, isClosed }) => (isClosed ? [] : [index])),
    };
  }

  async missing({ fromMs = -Infinity, toMs = Infinity }: TimeRange = {}): Promise<MissingDay[]> {
    const days = await this.#recent();
    return days.flatMap(({ day, rows, why }) =>
      why !== undefined && day + DAY_MS > fromMs && day < toMs ? [{ kind: this.#kind, day, rows, why }] : [],
    );
  }

  #recent(): Promise<readonly StoredDay[]> {
    const now = performance.now();
    if (this.#reading && now - this.#readAt < FRESH_MS) return this.#reading;
    this.#readAt = now;
    const reading = this.#read();
    this.#reading = reading;
    reading.catch(() => {
      // The next caller tries again.
      if (this.#reading === reading) this.#reading = undefined;
    });
    return reading;
  }

  async #read(): Promise<readonly StoredDay[]> {
    const found = await this.#client.send<
      { index: string; status: string; health?: string; "docs.count"?: string | null }[]
    >(
      { operation: "indices" },
      {
        method: "GET",
        path: `/_cat/indices/${this.#name}-2*`,
        query: { format: "json", h: "index,status,health,docs.count", expand_wildcards: "open,closed" },
      },
    );
    const days = found.flatMap(({ index, status, health, "docs.count": count }): StoredDay[] => {
      const day = dayOfIndex(this.#name, index);
      if (day === undefined) return [];
      const isClosed = status === "close";
      if (isClosed || health === "red") {
        const why = isClosed
          ? `the index ${index} is closed`
          : `a part of the index ${index} has no copy on a running OpenSearch node`;
        return [{ index, day, isClosed, rows: this.#known.get(day) ?? 0, why }];
      }
      const rows = Number(count ?? 0);
      this.#known.set(day, rows);
      return [{ index, day, isClosed, rows, why: undefined }];
    });
    this.#mayLackDays = days.some(({ why }) => why !== undefined);
    const kept = new Set(days.map(({ day }) => day));
    for (const day of this.#known.keys()) if (!kept.has(day)) this.#known.delete(day);
    return days.sort((a, b) => a.day - b.day);
  }
}
