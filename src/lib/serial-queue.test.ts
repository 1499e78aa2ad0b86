import { execFile } from "node:child_process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { SerialQueue } from "./serial-queue.ts";

test("tasks run one at a time, in the order of their calls", async () => {
  const turns = new SerialQueue();
  const steps: string[] = [];
  const work = (name: string) => async () => {
    steps.push(`${name} begins`);
    await nextTurn();
    steps.push(`${name} ends`);
    return name;
  };
  expect(await Promise.all(["a", "b"].map((name) => turns.take(work(name))))).toEqual(["a", "b"]);
  expect(steps).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("a failure rejects its own task, and the next one runs", async () => {
  const turns = new SerialQueue();
  const failed = turns.take(async () => Promise.reject(new Error("torn")));
  const next = turns.take(async () => "done");
  await expect(failed).rejects.toThrow("torn");
  expect(await next).toBe("done");
});

test("a failure that nobody awaits is an unhandled rejection", async () => {
  const program = `
    import { SerialQueue } from ${JSON.stringify(new URL("./serial-queue.ts", import.meta.url).href)};
    void new SerialQueue().take(async () => { throw new Error("nobody hears this"); });`;
  const outcome = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
    execFile(process.execPath, ["--input-type=module", "-e", program], (error, _, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    ),
  );
  expect(outcome).toEqual({ code: 1, stderr: expect.stringContaining("nobody hears this") });
});

test("the number of unfinished tasks and their completion are known", async () => {
  const turns = new SerialQueue();
  const gate = Promise.withResolvers<void>();
  const refused = expect(turns.take(() => gate.promise)).rejects.toThrow("torn");
  void turns.take(nextTurn);
  expect(turns.waiting).toBe(2);
  gate.reject(new Error("torn"));
  await turns.settled();
  await refused;
  expect(turns.waiting).toBe(0);
});
