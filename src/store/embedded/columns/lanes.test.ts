import { expect, test } from "vitest";
import { StoreUnavailable } from "../../store.ts";
import { HEAVY_PER_ASKER_MAX, Lanes, type Asker } from "./lanes.ts";

const never = new AbortController().signal;

/** A question that is answered when it is told to be. */
function ask(lanes: Lanes, asker: Asker, signal = never) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const question = { hasBegun: false, answer: resolve, ended: Promise.resolve() };
  question.ended = lanes.take(asker, signal, () => {
    question.hasBegun = true;
    return promise;
  });
  question.ended.catch(() => undefined);
  return question;
}

const settle = () => new Promise(setImmediate);
const begun = async (questions: readonly { readonly hasBegun: boolean }[]) => {
  await settle();
  return questions.map(({ hasBegun }) => hasBegun);
};

test("no client gets every place for questions that take long, and quick questions have places of their own", async () => {
  const lanes = new Lanes();
  const ofOne = Array.from({ length: 4 }, () => ask(lanes, { name: "one", lane: "heavy" }));
  const ofOther = ask(lanes, { name: "other", lane: "heavy" });
  const quick = ask(lanes, { name: "one", lane: "quick" });
  expect(await begun([...ofOne, ofOther, quick])).toEqual([true, true, false, false, true, true]);
  ofOne[0]!.answer();
  expect(await begun(ofOne)).toEqual([true, true, true, false]);
});

test("a client with too many questions under way is refused, and others are not", async () => {
  const lanes = new Lanes();
  for (let i = 0; i < HEAVY_PER_ASKER_MAX; i++) ask(lanes, { name: "one", lane: "heavy" });
  const refused = ask(lanes, { name: "one", lane: "heavy" });
  await expect(refused.ended).rejects.toBeInstanceOf(StoreUnavailable);
  expect(lanes.refused).toBe(1);
  expect(await begun([ask(lanes, { name: "other", lane: "heavy" })])).toEqual([true]);
});

test("a question that is cancelled while it waits never begins, and the place stays for the next", async () => {
  const lanes = new Lanes();
  const running = [1, 2].map(() => ask(lanes, { name: "one", lane: "heavy" }));
  const gone = new AbortController();
  const cancelled = ask(lanes, { name: "one", lane: "heavy" }, gone.signal);
  const next = ask(lanes, { name: "one", lane: "heavy" });
  gone.abort(new Error("gone"));
  await expect(cancelled.ended).rejects.toThrow("gone");
  running[0]!.answer();
  expect(await begun([cancelled, next])).toEqual([false, true]);
});

test("a question that fails makes room like any other", async () => {
  const lanes = new Lanes();
  const fails = () => lanes.take({ lane: "quick" }, never, () => Promise.reject(new Error("failed")));
  for (let i = 0; i < 20; i++) await expect(fails()).rejects.toThrow("failed");
  expect(lanes.running).toBe(0);
});
