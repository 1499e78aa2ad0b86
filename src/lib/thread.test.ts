import type { ResourceLimits } from "node:worker_threads";
import { expect, test } from "vitest";
import { Thread, threadHeaps } from "./thread.ts";

const threadFile = (code: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { workerData } from "node:worker_threads";
      import { setTimeout as delay } from "node:timers/promises";
      import { serveThread } from ${JSON.stringify(new URL("./thread.ts", import.meta.url).href)};
      ${code}`)}`,
  );

const unexpected = (error: Error) => expect.unreachable(error.message);

test("a thread is not terminated while it loads its code", async () => {
  const loaded = new Int32Array(new SharedArrayBuffer(4));
  const slow = threadFile(`await delay(200); workerData[0] = 1; serveThread({});`);
  await new Thread(slow, loaded, unexpected).end();
  expect(loaded[0]).toBe(1);
});

test("a thread that cannot load its code reports the error and can be ended", async () => {
  const died = Promise.withResolvers<Error>();
  const thread = new Thread(threadFile(`throw new Error("no such engine");`), undefined, died.resolve);
  expect((await died.promise).message).toBe("no such engine");
  await thread.end();
});

test("the young generation of a thread is limited, and its heap is reported under its name until it ends", async () => {
  const file = threadFile(`
    import { resourceLimits } from "node:worker_threads";
    serveThread({ limits: () => resourceLimits });`);
  const thread = new Thread<{ limits: () => ResourceLimits }>(file, undefined, unexpected);
  expect((await thread.call("limits")).maxYoungGenerationSizeMb).toBe(24);
  // Other test files of the same process may have threads of the service.
  const ownHeaps = async () => (await threadHeaps()).filter((heap) => heap.thread === "other");
  const [heap, ...others] = await ownHeaps();
  expect(others).toEqual([]);
  expect(heap!.used).toBeGreaterThan(0);
  expect(heap!.total).toBeGreaterThanOrEqual(heap!.used);
  await thread.end();
  expect(await ownHeaps()).toEqual([]);
});
