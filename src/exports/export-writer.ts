import { Thread } from "../lib/thread.ts";
import type { ExportWriterApi, ExportWriterTask, WriteResult } from "./export-writer-thread.ts";

// Rows are short-lived: a small young generation costs little time and keeps the memory of an export small.
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

const CHUNK_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Writes the events to a file in another thread, with back-pressure from the disk. Rejects when the signal aborts. */
export async function writeExport(
  task: ExportWriterTask,
  events: AsyncIterable<readonly string[]>,
  signal: AbortSignal,
): Promise<WriteResult> {
  signal.throwIfAborted();
  // If the thread dies, the pending call rejects, so no separate handler is needed.
  const file = new URL("./export-writer-thread.ts", import.meta.url);
  const thread = new Thread<ExportWriterApi>(file, task, () => undefined, THREAD_MEMORY);
  try {
    // One chunk is written while the next is fetched; memory never holds more than these two.
    let writing: Promise<unknown> = Promise.resolve();
    for await (const chunk of events) {
      for (const part of splitBySize(chunk)) {
        signal.throwIfAborted();
        await writing;
        writing = thread.call("add", part);
        // The next iteration awaits it. Until then a failure must not be an unhandled rejection.
        writing.catch(() => undefined);
      }
    }
    await writing;
    // A scan may end without an error when it is aborted; the export is then incomplete.
    signal.throwIfAborted();
    return await thread.call("end");
  } finally {
    await thread.end();
  }
}

/** Splits a chunk so that the thread never receives more large events at once than its memory can hold. */
function* splitBySize(events: readonly string[]): Iterable<readonly string[]> {
  let from = 0;
  let characters = 0;
  for (let at = 0; at < events.length; at++) {
    const length = events[at]!.length;
    if (at > from && characters + length > CHUNK_CHARACTERS_MAX) {
      yield events.slice(from, at);
      from = at;
      characters = 0;
    }
    characters += length;
  }
  yield from === 0 ? events : events.slice(from);
}
