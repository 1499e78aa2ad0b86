import type { JsonObject, Severity, SourceKind } from "../model/event.ts";
import type { Random } from "./random.ts";
import type { DemoSite } from "./site.ts";

/** A generated event, before it has a source name and a class. */
export interface DemoEvent {
  readonly type: string;
  readonly source: SourceKind;
  readonly severity: Severity;
  readonly atMs: number;
  readonly raw: JsonObject;
  readonly enrichment?: JsonObject;
}

interface GeneratedEvent {
  readonly raw: JsonObject;
  readonly severity?: Severity;
  readonly enrichment?: JsonObject;
  /** A follow-up event: the end of a call, a link that recovers. */
  readonly later?: DemoEvent;
}

export interface EventKind {
  readonly source: SourceKind;
  readonly type: string;
  readonly severity: Severity;
  /** The relative frequency by day and at night. */
  readonly weights: readonly [day: number, night: number];
  readonly generate: (site: DemoSite, random: Random, atMs: number) => GeneratedEvent;
}

export function eventKind(
  source: EventKind["source"],
  type: string,
  severity: Severity,
  weights: EventKind["weights"],
  make: EventKind["generate"],
): EventKind {
  return { source, type, severity, weights, generate: make };
}
