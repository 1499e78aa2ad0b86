import type { Flow } from "../../../model/flow-query.ts";
import type { FlowRows } from "../../../model/flow.ts";
import type { DayRows, FlowArchive } from "../../ports/archive.ts";
import type { FlowDatabase } from "./flow-database.ts";

const PAGE_FLOWS = 5000;

/** The flows of a data folder, read and written as a whole. */
export class FolderFlows implements FlowArchive {
  readonly #flows: FlowDatabase;

  constructor(flows: FlowDatabase) {
    this.#flows = flows;
  }

  async days(): Promise<readonly DayRows[]> {
    return (await this.#flows.days()).map(([day, rows]) => ({ day, rows }));
  }

  async *readDay(day: number): AsyncIterable<readonly Flow[]> {
    const rows = (await this.days()).find((each) => each.day === day)?.rows ?? 0;
    for (let after = 0; after < rows; after += PAGE_FLOWS) yield await this.#flows.span(day, after, after + PAGE_FLOWS);
  }

  append(rows: FlowRows, batchId: string): Promise<void> {
    return this.#flows.append(rows, batchId);
  }
}
