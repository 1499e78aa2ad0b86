import type { JsonObject } from "./event.ts";

/** What others have reported of an address. */
export interface Reputation {
  readonly address: string;
  readonly checkedAt: number;
  /** As it stands in the enrichment of events. */
  readonly report: JsonObject;
}
