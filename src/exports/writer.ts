import { Thread } from "../lib/thread.ts";
import type { WriterApi, WriterTask, Written } from "./writer-thread.ts";

// Rows are short-lived: a small nursery costs little time and keeps what an export adds to memory small.
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

/** Writes the events to a file in another thread, no faster than the disk takes them. Rejects when the signal says so. */
export async function writeExport(
  task: WriterTask,
  events: AsyncIterable<readonly string[]>,
  signal: AbortSignal,
): Promise<Written> {
  signal.throwIfAborted();
  // A thread that dies makes the call that waits for it reject: nobody else needs to hear of it.
  const file = new URL("./writer-thread.ts", import.meta.url);
  const thread = new Thread<WriterApi>(file, task, () => undefined, THREAD_MEMORY);
  try {
    // One chunk is being written while the next one is fetched: never more in memory, however many rows.
    let writing: Promise<unknown> = Promise.resolve();
    for await (const chunk of events) {
      signal.throwIfAborted();
      await writing;
      writing = thread.call("add", chunk);
      // The next turn awaits it; until then a failure must not count as one that nobody has taken.
      writing.catch(() => undefined);
    }
    await writing;
    // A scan may end quietly when it is told to stop: what is there then is not the whole export.
    signal.throwIfAborted();
    return await thread.call("end");
  } finally {
    await thread.end();
  }
}
