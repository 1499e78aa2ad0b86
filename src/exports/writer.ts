import { Worker } from "node:worker_threads";
import type { WriterInput, WriterProgress, WriterTask } from "./writer-thread.ts";

const THREAD_MEMORY = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

/** Writes the events to a file in another thread, no faster than the disk takes them. Rejects when the signal says so. */
export async function writeExport(
  task: WriterTask,
  events: AsyncIterable<readonly string[]>,
  signal: AbortSignal,
): Promise<WriterProgress> {
  signal.throwIfAborted();
  const thread = new Worker(new URL("./writer-thread.ts", import.meta.url), {
    workerData: task,
    resourceLimits: THREAD_MEMORY,
  });
  const unanswered: PromiseWithResolvers<WriterProgress>[] = [];
  let failure: Error | undefined;
  const fail = (reason: Error) => {
    failure ??= reason;
    for (const answer of unanswered.splice(0)) answer.reject(failure);
  };
  const abort = () => fail(signal.reason as Error);
  const send = (input: WriterInput): Promise<WriterProgress> => {
    const answer = Promise.withResolvers<WriterProgress>();
    // Nobody may be waiting for this one when an earlier one fails, and then the earlier one tells.
    answer.promise.catch(() => undefined);
    if (failure) answer.reject(failure);
    else unanswered.push(answer);
    thread.postMessage(input);
    return answer.promise;
  };
  thread.on("message", (progress: WriterProgress) => unanswered.shift()?.resolve(progress));
  thread.on("error", fail);
  thread.on("exit", () => fail(new Error("the writing thread ended early")));
  signal.addEventListener("abort", abort, { once: true });
  try {
    // One chunk is being written while the next one is fetched: never more in memory, however many rows.
    let writing: Promise<unknown> = Promise.resolve();
    for await (const chunk of events) {
      const next = send(chunk);
      await writing;
      writing = next;
    }
    await writing;
    return await send(null);
  } finally {
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
