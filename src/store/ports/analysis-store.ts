import type { Severity } from "../../model/event.ts";

/** An alert that is to be analysed. */
export interface AnalysisRequest {
  readonly id: string;
  readonly severity: Severity;
}

/** Hands alerts to the node that analyses them. */
export interface AnalysisRequests {
  send(request: AnalysisRequest): Promise<void>;
  /** Calls the listener with each request of any node, and with undefined when some may have been missed. */
  listen(listener: (request: AnalysisRequest | undefined) => void): () => void;
}

/** The token budget of AI analysis. */
export interface AnalysisStore {
  /** Undefined if there are no other nodes. */
  readonly requests?: AnalysisRequests | undefined;
  /** Tokens that were used in the month, written as 2026-11. */
  tokensUsed(month: string): Promise<number>;
  /** Adds the tokens unless the month would exceed `max`; false: it would, and nothing is added. */
  reserveTokens(month: string, tokens: number, max: number): Promise<boolean>;
  addTokens(month: string, tokens: number): Promise<void>;
}
