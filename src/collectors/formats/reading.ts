import type { CsvTables } from "./generic/csv-tables.ts";
import type { EventClass, JsonObject, Severity, SourceKind } from "../../model/event.ts";

// The result of reading a line or body: one shape for all formats and transports.

/** Reasons for refusing input. Every refusal is counted under exactly one of them. */
export const REFUSAL_REASONS = [
  "not_text",
  "too_long",
  "malformed",
  "unknown_kind",
  "not_allowed",
  "too_many_connections",
  "too_fast",
  "queue_full",
  "cut_off",
  "handshake_failed",
  "bad_signature",
  "too_late",
] as const;

export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** An event as its reader understood it. */
export interface ParsedEvent {
  readonly type: string;
  readonly source: SourceKind;
  readonly severity: Severity;
  /** Class of a type that is the device's own; otherwise it follows from the type. */
  readonly class?: EventClass | undefined;
  /** Time of the event; null if the sender gives none, or none that is valid. */
  readonly timestampMs: number | null;
  /** Fields, under the names of FIELD_NAMES where one fits; `line` holds the original line. */
  readonly raw: JsonObject;
}

/** A flow that an IDS reported. Addresses are in any notation. */
export interface ParsedFlow {
  readonly srcIp: string;
  readonly dstIp: string;
  readonly srcPort: number;
  readonly dstPort: number;
  readonly protocol: number;
  /** In this direction only. */
  readonly bytes: number;
  readonly packets: number;
  readonly tcpFlags: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The name of the line format that understood a line; absent where the collector has only one, or none understood it. */
interface Understood {
  readonly format?: string | undefined;
}

export type Reading =
  | ({ readonly kind: "events"; readonly events: readonly ParsedEvent[] } & Understood)
  | ({ readonly kind: "flows"; readonly flows: readonly ParsedFlow[] } & Understood)
  /** Understood, but without news: a keep-alive, or an update that adds nothing. */
  | ({ readonly kind: "nothing" } & Understood)
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string };

/** Type of an event that no reader understood. */
export const UNPARSED_TYPE = "unparsed";

export interface ReadContext {
  readonly nowMs: number;
  /** Address of origin; empty if there is none. */
  readonly sender: string;
  /** Zone of times without one. */
  readonly timezone: string;
  /** Names of columns that lines have told, for CSV; without it, none is read. */
  readonly tables?: CsvTables | undefined;
}
