import { ThreadError } from "../../lib/thread.ts";
import { QuestionRefused, RuleConflict, StoreUnavailable } from "../store.ts";

/** What a thread of the store could not do, as the store's callers know it. */
export function asStoreError(error: unknown): unknown {
  if (!(error instanceof ThreadError)) return error;
  const { field, reason, kind } = error.details;
  if (error.name === "QuestionRefused") return new QuestionRefused(String(field), error.message);
  if (error.name === "RuleConflict") return new RuleConflict(kind as RuleConflict["kind"], error.message);
  if (error.name === "StoreUnavailable")
    return new StoreUnavailable(reason as StoreUnavailable["reason"], error.message);
  if (isStorageFailure(error)) return noRoom(error);
  return new StoreUnavailable("failed", "the question could not be answered", 5, { cause: error });
}

/** Why events could not be written. */
export function notStored(error: unknown): StoreUnavailable {
  if (isStorageFailure(error)) return noRoom(error);
  return new StoreUnavailable("failed", "the events could not be stored", 1, { cause: error });
}

export function noRoom(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("disk_full", "the disk has no room, or does not take writes", 5, { cause });
}

/** Writes, and says of a disk without room what the store's callers know. */
export function writing<Value>(write: () => Value): Value {
  try {
    return write();
  } catch (error) {
    throw isStorageFailure(error) ? noRoom(error) : error;
  }
}

const SQLITE_FULL = 13;
const SQLITE_IOERR = 10;

/** Of an error of the engine itself, or one that came out of a thread. */
export function isStorageFailure(error: unknown): boolean {
  const { details, errcode } = error as { details?: { errcode?: number }; errcode?: number };
  const code = Number(details?.errcode ?? errcode ?? Number.NaN) & 0xff;
  return code === SQLITE_FULL || code === SQLITE_IOERR;
}
