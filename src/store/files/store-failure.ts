import { basename } from "node:path";
import { ThreadError } from "../../lib/thread.ts";
import { RuleConflict } from "../ports/rule-store.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import { isFileGone } from "./file-identity.ts";

/** What a thread of the store could not do, as the store's callers know it; `path` is the file where it works on one alone. */
export function asStoreError(error: unknown, path?: string): unknown {
  if (!(error instanceof ThreadError)) return error;
  const { field, reason, kind, retryAfterSeconds } = error.details;
  if (error.name === "QueryRefused") return new QueryRefused(String(field), error.message);
  if (error.name === "RuleConflict") return new RuleConflict(kind as RuleConflict["kind"], error.message);
  if (error.name === "StoreUnavailable")
    return new StoreUnavailable(reason as StoreUnavailable["reason"], error.message, Number(retryAfterSeconds));
  if (isFileGone(error)) return fileGone(error);
  if (isStorageFailure(error)) return noRoom(error);
  const cause = path === undefined ? error : ofFile(path, error);
  return new StoreUnavailable("failed", "the question could not be answered", 5, { cause });
}

/** Why events could not be written. */
export function notStored(error: unknown): StoreUnavailable {
  if (isFileGone(error)) return fileGone(error);
  if (isStorageFailure(error)) return noRoom(error);
  return new StoreUnavailable("failed", "the events could not be stored", 1, { cause: error });
}

export function noRoom(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("disk_full", "the disk has no room, or does not take writes", 5, { cause });
}

const FILE_GONE_RETRY_SECONDS = 30;

export function fileGone(cause: unknown): StoreUnavailable {
  const message = "a file of the data folder was removed or replaced while the service was running; its log names it";
  return new StoreUnavailable("file_gone", message, FILE_GONE_RETRY_SECONDS, { cause });
}

/** Writes, and says of a disk without room, or of a file that is gone, what the store's callers know. */
export function writing<Value>(write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    if (isFileGone(error)) throw fileGone(error);
    throw isStorageFailure(error) ? noRoom(error) : error;
  }
}

// Result codes of SQLite.
const BUSY = 5;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** Of an error of the engine itself, or one that came out of a thread. */
export function isStorageFailure(error: unknown): boolean {
  const code = resultCode(error);
  return code === FULL || code === IO_ERROR;
}

/** Somebody else has the file just then: whoever can wait for the next turn finds it free. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === BUSY;
}

/** What is lost with a file that is moved away; docs/operating.md has the same list. */
const LOSSES: { readonly [name: string]: string } = {
  "cases.db": "your rules, every alert and every notification are lost",
  "keys.db": "every client needs a new key",
  "lock.db": "nothing is lost",
  "state.db": "exports have to be asked for again, and reputations",
};

/** The store does not go on with a file whose content is not to be trusted. Its message is for whoever can mend that. */
export class DamagedFile extends Error {
  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(
      `The file ${path} is damaged (${reason}).\n` +
        `Put a copy of it in its place, or move it away: then ${LOSSES[basename(path)] ?? "the events of its day are lost"}. ` +
        "Either way the -wal and -shm beside it must go as well.",
      options,
    );
    this.name = "DamagedFile";
  }
}

/** Works on one file, and says of damage which file it is in: the engine's own words name none. */
export function onFile<Value>(path: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw ofFile(path, error);
  }
}

/** What went wrong on a file: damage of it names it, anything else stays what it is. */
export function ofFile(path: string, error: unknown): unknown {
  const code = resultCode(error);
  if (code !== CORRUPT && code !== NOT_A_DATABASE) return error;
  return new DamagedFile(path, (error as Error).message, { cause: error });
}

type Call = (...args: readonly unknown[]) => unknown;

/** The same calls, each about the file that its first argument stands for: where that is damaged, it is named. */
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
