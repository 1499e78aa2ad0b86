import { StoreUnavailable } from "../ports/store-errors.ts";

// Errors of PostgreSQL and of its connections, by what the caller can do about them.

/** Codes of PostgreSQL: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const SERIALIZATION_FAILURE = "40001";
const DEADLOCK = "40P01";
const READ_ONLY = "25006";
const IDLE_IN_TRANSACTION = "25P03";
const DISK_FULL = "53100";
const IO_ERROR = "58030";
const QUERY_CANCELED = "57014";
const LOCK_TIMEOUT = "55P03";
/** Classes, the first two characters: connection exception, insufficient resources, operator intervention. */
const CONNECTION = "08";
const RESOURCES = "53";
const INTERVENTION = "57";
/** Of the operating system, when no connection can be made or one breaks. */
const SOCKET_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
/** The client has no codes of its own. */
const BROKEN = /connection terminated|connection ended|not queryable|timeout expired|query read timeout/i;
const WAITED = /timeout exceeded when trying to connect/i;

const RETRY_SECONDS = 2;
const DISK_FULL_RETRY_SECONDS = 5;

export type RetryReason = "serialization" | "deadlock";

/** Why the same transaction may succeed if it is run again, undefined if it may not. */
export function retryReason(error: unknown): RetryReason | undefined {
  const code = codeOf(error);
  if (code === SERIALIZATION_FAILURE) return "serialization";
  return code === DEADLOCK ? "deadlock" : undefined;
}

/** True if the connection is of no use any more, or leads to a server that accepts no writes. */
export function isConnectionUnusable(error: unknown): boolean {
  if (error instanceof StandbyServer) return true;
  const code = codeOf(error);
  if (code === READ_ONLY || code === IDLE_IN_TRANSACTION) return true;
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code))
    return SOCKET_CODES.has(code ?? "") || BROKEN.test(textOf(error));
  return code.startsWith(CONNECTION) || (code.startsWith(INTERVENTION) && code !== QUERY_CANCELED);
}

/** No connection could be made. The cause says why. */
export class ConnectFailure extends Error {
  constructor(hosts: readonly string[], cause: unknown) {
    super(`no PostgreSQL that accepts writes could be reached at ${hosts.join(", ")}: ${textOf(cause)}`, { cause });
    this.name = "ConnectFailure";
  }
}

/** The server is a standby, which accepts no writes. */
export class StandbyServer extends Error {
  constructor() {
    super("the server is a standby and accepts no writes");
    this.name = "StandbyServer";
  }
}

/** Converts errors that pass with time to StoreUnavailable. Returns any other error, which is a bug, unchanged. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error;
  const code = codeOf(error);
  // None of the messages has more than its words.
  const unavailable = (reason: StoreUnavailable["reason"], summary: string, seconds = RETRY_SECONDS) =>
    new StoreUnavailable(reason, summary, seconds, { cause: error, summary });
  if (code === DISK_FULL || code === IO_ERROR)
    return unavailable(
      "disk_full",
      "the disk of PostgreSQL is full or does not accept writes",
      DISK_FULL_RETRY_SECONDS,
    );
  if (isWaitedOut(error)) return unavailable("queue_full", "all connections to PostgreSQL are busy");
  if (hasNoResources(error) || (error instanceof ConnectFailure && hasNoResources(error.cause)))
    return unavailable("queue_full", "PostgreSQL has no free connection or memory");
  if (error instanceof ConnectFailure || isConnectionUnusable(error))
    return unavailable("unreachable", "PostgreSQL does not answer or accepts no writes");
  if (code === QUERY_CANCELED || code === LOCK_TIMEOUT) return unavailable("failed", "PostgreSQL took too long");
  if (retryReason(error) !== undefined) return unavailable("failed", "the change kept conflicting with others");
  return error;
}

/** True if no connection of the pool became free in time. */
export function isWaitedOut(error: unknown): boolean {
  return WAITED.test(textOf(error));
}

function hasNoResources(error: unknown): boolean {
  const code = codeOf(error);
  return code?.length === 5 && code.startsWith(RESOURCES);
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
