import { ThreadError } from "../../lib/thread.ts";
import { QuestionRefused, StoreUnavailable } from "../store.ts";

/** What a thread of the store could not do, as the store's callers know it. */
export function asStoreError(error: unknown): unknown {
  if (!(error instanceof ThreadError)) return error;
  const { field, reason } = error.details;
  if (error.name === "QuestionRefused") return new QuestionRefused(String(field), error.message);
  if (error.name === "StoreUnavailable")
    return new StoreUnavailable(reason as StoreUnavailable["reason"], error.message);
  return new StoreUnavailable("failed", "the question could not be answered", 5, { cause: error });
}
