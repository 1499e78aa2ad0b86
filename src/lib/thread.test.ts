import { expect, test } from "vitest";
import { Thread } from "./thread.ts";

const SERVE = JSON.stringify(new URL("./thread.ts", import.meta.url).href);

/** A thread whose code takes a while to load, and says in the memory that it is given how far it has come. */
const slowly = (end: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { workerData } from "node:worker_threads";
      import { serveThread } from ${SERVE};
      const progress = new Int32Array(workerData);
      Atomics.store(progress, 0, 1);
      Atomics.notify(progress, 0);
      Atomics.wait(progress, 1, 0, 300);
      Atomics.store(progress, 0, 2);
      ${end}
    `)}`,
  );

test("a thread that is ended while it loads has loaded before it ends", async () => {
  const memory = new SharedArrayBuffer(8);
  const progress = new Int32Array(memory);
  const thread = new Thread(slowly("serveThread({});"), memory, (error) => expect.unreachable(error.message));
  await Atomics.waitAsync(progress, 0, 0).value;
  await thread.end();
  expect(progress[0]).toBe(2);
});

test("a thread that dies while it loads is ended all the same", async () => {
  const deaths: Error[] = [];
  const thread = new Thread(slowly('throw new Error("no");'), new SharedArrayBuffer(8), (error) => deaths.push(error));
  await expect(thread.call("anything" as never)).rejects.toThrow("no");
  await thread.end();
  expect(deaths).toHaveLength(1);
});
