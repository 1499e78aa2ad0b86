import type { Flow } from "../../model/flow-query.ts";
import type { FlowRows } from "../../model/flow.ts";
import type { DayRows, FlowArchive } from "../ports/archive.ts";
import { countDays, pagesOfIndex } from "./archived-events.ts";
import { dailyIndexName } from "./daily-index.ts";
import { flowOf, type FlowSource } from "./flow-documents.ts";
import type { FlowSearchAnswer } from "./flow-search.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";
import type { OpenSearchFlows } from "./opensearch-flows.ts";

const PAGE_FLOWS = 5000;
/** The order of rows, which is unique. */
const ORDER = [{ timestamp: "asc" }, { batch: "asc" }, { row: "asc" }];

/** The flows in OpenSearch, read and written as a whole. */
export class ArchivedFlows implements FlowArchive {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #flows: OpenSearchFlows;

  constructor(client: OpenSearchClient, name: string, flows: OpenSearchFlows) {
    this.#client = client;
    this.#name = name;
    this.#flows = flows;
  }

  days(): Promise<readonly DayRows[]> {
    return countDays(this.#client, this.#name);
  }

  async *readDay(day: number): AsyncIterable<readonly Flow[]> {
    const index = dailyIndexName(this.#name, day);
    for await (const hits of pagesOfIndex<FlowSearchAnswer>(this.#client, index, PAGE_FLOWS, ORDER))
      yield (hits as readonly { _source: FlowSource }[]).map(({ _source }) => flowOf(_source));
  }

  append(rows: FlowRows, batchId: string): Promise<void> {
    return this.#flows.append(rows, batchId);
  }
}
