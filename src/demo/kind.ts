import type { JsonObject, Severity, SourceKind } from "../model/event.ts";
import type { Random } from "./random.ts";
import type { Site } from "./site.ts";

/** What happens, before it has a source name and a class. */
export interface Happening {
  readonly type: string;
  readonly source: SourceKind;
  readonly severity: Severity;
  readonly atMs: number;
  readonly raw: JsonObject;
  readonly enrichment?: JsonObject;
}

interface Made {
  readonly raw: JsonObject;
  readonly severity?: Severity;
  readonly enrichment?: JsonObject;
  /** What this one leads to: the end of a call, a link that comes back. */
  readonly later?: Happening;
}

export interface Kind {
  readonly source: SourceKind;
  readonly type: string;
  readonly severity: Severity;
  /** How often by day and by night, against the other kinds. */
  readonly weights: readonly [day: number, night: number];
  readonly make: (site: Site, random: Random, atMs: number) => Made;
}

export function kind(
  source: Kind["source"],
  type: string,
  severity: Severity,
  weights: Kind["weights"],
  make: Kind["make"],
): Kind {
  return { source, type, severity, weights, make };
}
