import { expect, test } from "vitest";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { HEAVY_PER_CLIENT_MAX, QueryLanes, type LaneClient } from "./query-lanes.ts";

const never = new AbortController().signal;

/** Starts a query that ends when `complete` is called. */
function start(lanes: QueryLanes, client: LaneClient, signal = never) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const query = { isStarted: false, complete: resolve, ended: Promise.resolve() };
  query.ended = lanes.take(client, signal, () => {
    query.isStarted = true;
    return promise;
  });
  query.ended.catch(() => undefined);
  return query;
}

const settle = () => new Promise(setImmediate);
const started = async (queries: readonly { readonly isStarted: boolean }[]) => {
  await settle();
  return queries.map(({ isStarted }) => isStarted);
};

test("no client gets every slot for heavy queries, and quick queries have slots of their own", async () => {
  const lanes = new QueryLanes();
  const ofOne = Array.from({ length: 4 }, () => start(lanes, { name: "one", lane: "heavy" }));
  const ofOther = start(lanes, { name: "other", lane: "heavy" });
  const quick = start(lanes, { name: "one", lane: "quick" });
  expect(await started([...ofOne, ofOther, quick])).toEqual([true, true, false, false, true, true]);
  ofOne[0]!.complete();
  expect(await started(ofOne)).toEqual([true, true, true, false]);
});

test("no client gets every slot for quick queries either, nor the whole queue", async () => {
  const lanes = new QueryLanes();
  const ofOne = Array.from({ length: 100 }, () => start(lanes, { name: "one", lane: "quick" }));
  const ofOther = start(lanes, { name: "other", lane: "quick" });
  expect(await started([...ofOne.slice(0, 3), ofOther])).toEqual([true, true, false, true]);
  await expect(start(lanes, { name: "one", lane: "quick" }).ended).rejects.toBeInstanceOf(StoreUnavailable);
  ofOther.complete();
  expect(await started([start(lanes, { name: "third", lane: "quick" })])).toEqual([true]);
});

test("full-text searches of one client leave slots to others, and no kind of query takes those of another", async () => {
  const lanes = new QueryLanes();
  const ofOne = Array.from({ length: 3 }, () => start(lanes, { name: "one", lane: "text" }));
  const ofOthers = ["two", "three"].map((name) => start(lanes, { name, lane: "text" }));
  const heavy = start(lanes, { name: "one", lane: "heavy" });
  expect(await started([...ofOne, ...ofOthers, heavy])).toEqual([true, true, false, true, true, true]);
});

test("a client with too many queries in flight is refused, and others are not", async () => {
  const lanes = new QueryLanes();
  for (let i = 0; i < HEAVY_PER_CLIENT_MAX; i++) start(lanes, { name: "one", lane: "heavy" });
  const refused = start(lanes, { name: "one", lane: "heavy" });
  await expect(refused.ended).rejects.toBeInstanceOf(StoreUnavailable);
  expect(lanes.refused).toBe(1);
  expect(await started([start(lanes, { name: "other", lane: "heavy" })])).toEqual([true]);
});

test("a query that is cancelled while it is queued never starts, and its slot goes to the next", async () => {
  const lanes = new QueryLanes();
  const running = [1, 2].map(() => start(lanes, { name: "one", lane: "heavy" }));
  const gone = new AbortController();
  const cancelled = start(lanes, { name: "one", lane: "heavy" }, gone.signal);
  const next = start(lanes, { name: "one", lane: "heavy" });
  gone.abort(new Error("gone"));
  await expect(cancelled.ended).rejects.toThrow("gone");
  running[0]!.complete();
  expect(await started([cancelled, next])).toEqual([false, true]);
});

test("a query that fails frees its slot", async () => {
  const lanes = new QueryLanes();
  const fails = () => lanes.take({ lane: "quick" }, never, () => Promise.reject(new Error("failed")));
  for (let i = 0; i < 20; i++) await expect(fails()).rejects.toThrow("failed");
  expect(lanes.running).toBe(0);
});
