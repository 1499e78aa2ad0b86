import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { FairShare } from "./fair-share.ts";

function busyFor(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("other work runs after each slice, however many slices wait", async () => {
  const share = new FairShare();
  let turns = 0;
  const turnsBefore: number[] = [];
  const slices = Array.from({ length: 5 }, () =>
    share.take(() => {
      turnsBefore.push(turns);
      busyFor(5);
    }),
  );
  const all = Promise.all(slices);
  while (turnsBefore.length < slices.length) {
    await setImmediate();
    turns++;
  }
  await all;
  expect(turnsBefore.every((before, i) => i === 0 || before > turnsBefore[i - 1]!)).toBe(true);
});

test("a slice learns when it is over, and its error reaches only its caller", async () => {
  const share = new FairShare(1);
  let steps = 0;
  await share.take((isOver) => {
    do {
      steps++;
      busyFor(1);
    } while (!isOver());
  });
  expect(steps).toBe(1);
  const failing = share.take(() => {
    throw new Error("mine");
  });
  const next = share.take(() => void steps++);
  await expect(failing).rejects.toThrow("mine");
  await next;
  expect(steps).toBe(2);
});
