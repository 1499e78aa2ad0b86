import { execFile } from "node:child_process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("work is done one after the other, in the order in which it was asked for", async () => {
  const turns = new Turns();
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

test("a failure is told to whoever asked for that work, and the next begins all the same", async () => {
  const turns = new Turns();
  const failed = turns.take(async () => Promise.reject(new Error("torn")));
  const next = turns.take(async () => "done");
  await expect(failed).rejects.toThrow("torn");
  expect(await next).toBe("done");
});

test("a failure that nobody listens for is loud", async () => {
  const program = `
    import { Turns } from ${JSON.stringify(new URL("./turns.ts", import.meta.url).href)};
    void new Turns().take(async () => { throw new Error("nobody hears this"); });`;
  const outcome = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
    execFile(process.execPath, ["--input-type=module", "-e", program], (error, _, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    ),
  );
  expect(outcome).toEqual({ code: 1, stderr: expect.stringContaining("nobody hears this") });
});

test("how much waits is known, and when all of it is done", async () => {
  const turns = new Turns();
  const gate = Promise.withResolvers<void>();
  const refused = expect(turns.take(() => gate.promise)).rejects.toThrow("torn");
  void turns.take(nextTurn);
  expect(turns.waiting).toBe(2);
  gate.reject(new Error("torn"));
  await turns.settled();
  await refused;
  expect(turns.waiting).toBe(0);
});
