import { basename } from "node:path";
import { ThreadError } from "../../lib/thread.ts";
import { RuleConflict } from "../ports/rule-store.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import { isFileGone } from "./file-identity.ts";

/** Converts a thread's error to one that the store's callers know. `path` is the thread's file if it works on one alone. */
export function asStoreError(error: unknown, path?: string): unknown {
  if (!(error instanceof ThreadError)) return error;
  const { field, reason, kind, retryAfterSeconds } = error.details;
  if (error.name === "QueryRefused") return new QueryRefused(String(field), error.message);
  if (error.name === "RuleConflict") return new RuleConflict(kind as RuleConflict["kind"], error.message);
  if (error.name === "StoreUnavailable")
    return new StoreUnavailable(reason as StoreUnavailable["reason"], error.message, Number(retryAfterSeconds));
  if (isFileGone(error)) return fileGone(error);
  if (isStorageFailure(error)) return diskFull(error);
  const cause = path === undefined ? error : ofFile(path, error);
  return new StoreUnavailable("failed", "the query failed", 5, { cause });
}

/** Converts the error of a failed write of events. */
export function notStored(error: unknown): StoreUnavailable {
  if (isFileGone(error)) return fileGone(error);
  if (isStorageFailure(error)) return diskFull(error);
  return new StoreUnavailable("failed", "the events could not be stored", 1, { cause: error });
}

export function diskFull(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("disk_full", "the disk is full or does not accept writes", 5, { cause });
}

const FILE_GONE_RETRY_SECONDS = 30;

export function fileGone(cause: unknown): StoreUnavailable {
  const message = "a file of the data folder was removed or replaced while the service was running; the log names it";
  return new StoreUnavailable("file_gone", message, FILE_GONE_RETRY_SECONDS, { cause });
}

/** Runs a write. Converts the errors of a full disk and of a missing file to those that the store's callers know. */
export function writing<Value>(write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (isFileGone(error)) throw fileGone(error);
    throw isStorageFailure(error) ? diskFull(error) : error;
  }
}

// Result codes of SQLite.
const BUSY = 5;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** Accepts errors of the engine itself and those that crossed a thread boundary. */
export function isStorageFailure(error: unknown): boolean {
  const code = resultCode(error);
  return code === FULL || code === IO_ERROR;
}

/** True if another connection holds the file, which a later attempt will find free. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === BUSY;
}

/** The loss that moving a file away causes; docs/operating.md has the same list. */
const LOSSES: { readonly [name: string]: string } = {
  "cases.db": "your rules, every alert and every notification are lost",
  "keys.db": "every client needs a new key",
  "lock.db": "nothing is lost",
  "state.db": "exports must be requested again, and reputations are fetched again",
};

/** A file whose content cannot be trusted. The message is for the operator who can repair it. */
export class DamagedFile extends Error {
  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(
      `The file ${path} is damaged (${reason}).\n` +
        `Put a copy of it in its place, or move it away: then ${LOSSES[basename(path)] ?? "the events of its day are lost"}. ` +
        "Either way, remove its -wal and -shm files as well.",
      options,
    );
    this.name = "DamagedFile";
  }
}

/** Runs work on one file. Errors of damage name the file, which the engine's own messages do not. */
export function onFile<Value>(path: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw ofFile(path, error);
  }
}

/** Converts an error of damage to DamagedFile; returns any other error unchanged. */
export function ofFile(path: string, error: unknown): unknown {
  const code = resultCode(error);
  if (code !== CORRUPT && code !== NOT_A_DATABASE) return error;
  return new DamagedFile(path, (error as Error).message, { cause: error });
}

type Call = (...args: readonly unknown[]) => unknown;

/** Wraps calls whose first argument stands for a file, so that errors of damage name the file. */
export function namingFiles(
  calls: { readonly [name: string]: (...args: never[]) => unknown },
  pathOf: (number: number) => string,
): { [name: string]: Call } {
  const naming =
    (call: Call): Call =>
    (first, ...rest) => {
      try {
        return call(first, ...rest);
      } catch (error) {
        throw typeof first === "number" ? ofFile(pathOf(first), error) : error;
      }
    };
  return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, naming(call as Call)]));
}

function resultCode(error: unknown): number {
  const { details, errcode } = (error ?? {}) as { details?: { errcode?: number }; errcode?: number };
  return Number(details?.errcode ?? errcode ?? Number.NaN) & 0xff;
}
