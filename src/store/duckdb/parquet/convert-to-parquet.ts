import { Thread } from "../../../lib/thread.ts";
import type { ParquetTask } from "../../../model/export.ts";
import { cancellable } from "../../queries/queries-in-flight.ts";
import type { ParquetThreadApi } from "./parquet-thread.ts";

/**
 * Converts in a temporary thread, so that neither queries nor their memory are affected. Temporary files are in `scratch`.
 * Rejects with the signal's reason once it aborts.
 */
export async function convertToParquet(task: ParquetTask, scratch: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  // A thread that dies rejects the call: the export fails, and the service continues.
  const thread = new Thread<ParquetThreadApi>(new URL("./parquet-thread.ts", import.meta.url), undefined, () => {});
  try {
    await cancellable(
      signal,
      () => thread.call("cancel"),
      () => thread.call("convert", task, scratch),
    );
  } finally {
    await thread.leave();
  }
}
