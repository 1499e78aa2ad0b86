import { expect, test } from "vitest";
import { QueryRefused } from "../store/ports/store-errors.ts";
import { availablePart, type UnavailablePart } from "./available-part.ts";

const setUp = (msMax: number, signal = new AbortController().signal) => {
  const unavailable: UnavailablePart<string>[] = [];
  const options = {
    part: "slow",
    signal,
    msMax,
    onUnavailable: (part: UnavailablePart<string>) => unavailable.push(part),
  };
  return { unavailable, options };
};

test("a part in time is its value", async () => {
  const { unavailable, options } = setUp(60_000);
  expect(await availablePart(options, async () => 7)).toBe(7);
  expect(unavailable).toEqual([]);
});

test("a part that takes too long is stopped and left out, even if it ignores its signal", async () => {
  const { unavailable, options } = setUp(20);
  const never = new Promise<number>(() => undefined);
  let stopped: AbortSignal | undefined;
  expect(
    await availablePart(options, (signal) => {
      stopped = signal;
      return never;
    }),
  ).toBeNull();
  expect(stopped?.aborted).toBe(true);
  expect(unavailable).toEqual([{ part: "slow", reason: "deadline", message: "took longer than 0.02 s" }]);
});

test("a part that the store refuses is left out; a bug is not", async () => {
  const { unavailable, options } = setUp(60_000);
  const refused = async () => {
    throw new QueryRefused("query", "takes too much memory");
  };
  expect(await availablePart(options, refused)).toBeNull();
  expect(unavailable).toEqual([{ part: "slow", reason: "refused", message: "takes too much memory" }]);
  const bug = async () => {
    throw new TypeError("bug");
  };
  await expect(availablePart(options, bug)).rejects.toThrow("bug");
});

test("a client that disconnects ends the whole response", async () => {
  const gone = new AbortController();
  const { unavailable, options } = setUp(60_000, gone.signal);
  const waiting = availablePart(
    options,
    (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect(unavailable).toEqual([]);
});
