/** Who runs a query, and how long they want the answer. */
export interface QueryContext {
  /** Only some of a client's expensive queries run at a time. Undefined: the service itself. */
  readonly client?: string | undefined;
  /** Stops the query, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}
