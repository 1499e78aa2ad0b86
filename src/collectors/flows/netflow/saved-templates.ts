// Template state that survives a restart.

export interface SavedTemplate {
  readonly options: boolean;
  /** The template as received, in base64. */
  readonly spec: string;
  readonly learnedMs: number;
  readonly sentMs: number;
  readonly usedMs: number;
}

/** One observation domain of one transport session. */
export interface SavedDomain {
  readonly address: string;
  readonly port: number;
  readonly key: number;
  readonly options: SavedOptions;
  readonly templates: readonly SavedTemplate[];
}

export interface SavedOptions {
  readonly systemStartMs: number | null;
  readonly rate: number | null;
  readonly samplers: readonly (readonly [id: number, rate: number])[];
}
