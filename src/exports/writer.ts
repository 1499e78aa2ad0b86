import { Thread } from "../lib/thread.ts";
import type { WriterApi, WriterTask, Written } from "./writer-thread.ts";

// Rows are short-lived: a small nursery costs little time and keeps what an export adds to memory small.
const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

const PART_CHARACTERS_MAX = 4 * 1024 * 1024;

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
      for (const part of bounded(chunk)) {
        signal.throwIfAborted();
        await writing;
        writing = thread.call("add", part);
        // The next turn awaits it; until then a failure must not count as one that nobody has taken.
        writing.catch(() => undefined);
      }
    }
    await writing;
    // A scan may end quietly when it is told to stop: what is there then is not the whole export.
    signal.throwIfAborted();
    return await thread.call("end");
  } finally {
    await thread.end();
  }
}

/** Events can be large: the thread gets no more of them at once than it has memory for. */
function* bounded(events: readonly string[]): Iterable<readonly string[]> {
  let from = 0;
  let characters = 0;
  for (let at = 0; at < events.length; at++) {
    const length = events[at]!.length;
    if (at > from && characters + length > PART_CHARACTERS_MAX) {
      yield events.slice(from, at);
      from = at;
      characters = 0;
    }
    characters += length;
  }
  yield from === 0 ? events : events.slice(from);
}
