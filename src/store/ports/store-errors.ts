export interface UnavailableOptions extends ErrorOptions {
  /** What is wrong, without names of hosts, files or indices: for callers without a key. */
  readonly summary?: string | undefined;
}

/** The store cannot serve this call now: try again later. `reason` is a label for metrics. */
export class StoreUnavailable extends Error {
  readonly reason:
    | "queue_full"
    | "disk_full"
    | "file_gone"
    | "unreachable"
    | "lease_lost"
    | "lacking"
    | "failed"
    | "closed";
  readonly retryAfterSeconds: number;
  readonly summary: string | undefined;
  constructor(
    reason: StoreUnavailable["reason"],
    message: string,
    retryAfterSeconds = 1,
    options?: UnavailableOptions,
  ) {
    super(message, options);
    this.name = "StoreUnavailable";
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
    this.summary = options?.summary;
  }
}

/** The query cannot be answered as it stands; `field` names the part of it that is at fault. */
export class QueryRefused extends Error {
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.name = "QueryRefused";
    this.field = field;
  }
}
