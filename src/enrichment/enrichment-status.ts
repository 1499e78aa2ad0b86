// The status of enrichment, for operators.

export interface EnrichmentFault {
  readonly message: string;
  readonly atMs: number;
}

export interface GeoStatus {
  /** The database type in the file; null if no file could be read. */
  readonly kind: string | null;
  readonly builtAtMs: number | null;
  readonly readAtMs: number | null;
  readonly isBuiltin: boolean;
  readonly fault: EnrichmentFault | null;
}

export interface ListStatus {
  readonly name: string;
  /** The source, without parts of a URL that may be secret. */
  readonly from: string;
  readonly addresses: number;
  readonly networks: number;
  readonly domains: number;
  readonly badLines: number;
  /** Entries beyond the limit of a list. */
  readonly leftOut: number;
  readonly readAtMs: number | null;
  readonly fault: EnrichmentFault | null;
}

export interface ReputationStatus {
  readonly perDay: number;
  readonly usedToday: number;
  readonly waiting: number;
  readonly known: number;
  readonly pausedUntilMs: number | null;
  readonly fault: EnrichmentFault | null;
}

export interface EnrichmentStatus {
  /** Null if disabled. */
  readonly geo: GeoStatus | null;
  readonly lists: readonly ListStatus[];
  /** Null without a key. */
  readonly reputation: ReputationStatus | null;
}
