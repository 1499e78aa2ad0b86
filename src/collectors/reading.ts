import type { EventClass, JsonObject, Severity, SourceKind } from "../model/event.ts";

// What the readers of foreign lines and bodies make of them: the same shape, whatever came in and whichever way.

/** Why something that came in did not become an event. Every refusal is counted under exactly one of these. */
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

/** An event as a reader understood it. */
export interface ReadEvent {
  readonly type: string;
  readonly source: SourceKind;
  readonly severity: Severity;
  /** What the device says of a type that is its own; else it follows from the type. */
  readonly class?: EventClass | undefined;
  /** When it happened; null where the sender does not say, or says nothing that can be a time. */
  readonly timestampMs: number | null;
  /** Under the names of FIELD_NAMES where there is one for it; the original line is in `line`. */
  readonly raw: JsonObject;
}

/** A flow that an IDS has told of. Addresses in any spelling. */
export interface ReadFlow {
  readonly srcIp: string;
  readonly dstIp: string;
  readonly srcPort: number;
  readonly dstPort: number;
  readonly protocol: number;
  /** Of this direction alone. */
  readonly bytes: number;
  readonly packets: number;
  readonly tcpFlags: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export type Reading =
  | { readonly kind: "events"; readonly events: readonly ReadEvent[] }
  | { readonly kind: "flows"; readonly flows: readonly ReadFlow[] }
  /** Understood, and nothing to tell: a keep-alive, an update that adds nothing. */
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string };

/** The type of an event that no reader understood. */
export const UNPARSED_TYPE = "unparsed";

export interface ReadContext {
  readonly nowMs: number;
  /** The address that it came from; empty where there is none. */
  readonly sender: string;
  /** What a time without a zone is meant in. */
  readonly timezone: string;
}
