/** The token budget of AI analysis. */
export interface AnalysisStore {
  /** Tokens that were used in the month, written as 2026-11. */
  tokensUsed(month: string): Promise<number>;
  /** Adds the tokens unless the month would exceed `max`; false: it would, and nothing is added. */
  reserveTokens(month: string, tokens: number, max: number): Promise<boolean>;
  addTokens(month: string, tokens: number): Promise<void>;
}
