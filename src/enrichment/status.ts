// How enrichment does, for those who run the service.

export interface EnrichmentFault {
  readonly message: string;
  readonly atMs: number;
}

export interface GeoStatus {
  /** What the file says it is; null when none could be read. */
  readonly kind: string | null;
  readonly builtAtMs: number | null;
  readonly readAtMs: number | null;
  readonly isBuiltin: boolean;
  readonly fault: EnrichmentFault | null;
}

export interface ListStatus {
  readonly name: string;
  /** Without what may be secret in an address. */
  readonly from: string;
  readonly addresses: number;
  readonly networks: number;
  readonly domains: number;
  readonly badLines: number;
  /** Entries beyond what a list may have. */
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
  /** Null: off. */
  readonly geo: GeoStatus | null;
  readonly lists: readonly ListStatus[];
  /** Null: there is no key. */
  readonly reputation: ReputationStatus | null;
}
