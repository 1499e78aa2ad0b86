import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Backlog } from "../store/store.ts";
import { nextStep, PACE, waitAfter, type Past } from "./schedule.ts";

const QUIET: Backlog = { freshSince: null, recent: 0, retry: null };
const NEW: Past = { attemptsAt: [], pausedUntil: 0, lastWasNew: false };
const pace = { ...PACE, perMinuteMax: 3 };
const NOW = 1_000_000;
const step = (backlog: Partial<Backlog>, past: Partial<Past> = {}) =>
  nextStep({ ...QUIET, ...backlog }, { ...NEW, ...past }, pace, NOW, NOW);
const due = { deliveryId: "dlv_1", dueAt: NOW };

test("with nothing in line it waits for something", () => {
  expect(step({})).toEqual({ kind: "wait", until: null });
});

test("a few are gathered for a moment, many for up to a minute", () => {
  expect(step({ freshSince: NOW - 1999, recent: 5 })).toEqual({ kind: "wait", until: NOW + 1 });
  expect(step({ freshSince: NOW - 2000, recent: 5 })).toEqual({ kind: "begin" });
  expect(step({ freshSince: NOW - 2000, recent: 6 })).toEqual({ kind: "wait", until: NOW + 58_000 });
  expect(step({ freshSince: NOW - 60_000, recent: 6 })).toEqual({ kind: "begin" });
});

test("what is to be tried again is, once it is due, in turns with what is new", () => {
  expect(step({ retry: { ...due, dueAt: NOW + 5 } })).toEqual({ kind: "wait", until: NOW + 5 });
  expect(step({ retry: due })).toEqual({ kind: "again", deliveryId: "dlv_1" });
  const both = { retry: due, freshSince: NOW - 2000 };
  expect(step(both)).toEqual({ kind: "begin" });
  expect(step(both, { lastWasNew: true })).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("a channel that asked to be left alone, or had its messages for this minute, is", () => {
  expect(step({ retry: due }, { pausedUntil: NOW + 9 })).toEqual({ kind: "wait", until: NOW + 9 });
  const attemptsAt = [NOW - 50_000, NOW - 40_000, NOW - 1];
  expect(step({ retry: due }, { attemptsAt })).toEqual({ kind: "wait", until: NOW + 10_000 });
  expect(step({ retry: due }, { attemptsAt: attemptsAt.slice(1) })).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("a clock that is set back keeps nothing waiting", () => {
  const hour = 3_600_000;
  expect(step({ freshSince: NOW + hour, recent: 1 })).toEqual({ kind: "begin" });
  expect(step({ freshSince: NOW + hour, recent: 100 })).toEqual({ kind: "begin" });
  expect(step({ retry: { ...due, dueAt: NOW + hour } })).toEqual({ kind: "wait", until: NOW + hour });
  expect(step({ retry: { ...due, dueAt: NOW + hour + 1 } })).toEqual({ kind: "again", deliveryId: "dlv_1" });
  const past = { ...NEW, pausedUntil: 5000, attemptsAt: [1000, 2000, 3000] };
  const setBack = (steadyNow: number) => nextStep({ ...QUIET, retry: due }, past, pace, NOW, steadyNow);
  expect(setBack(4000)).toEqual({ kind: "wait", until: NOW + 57_000 });
  expect(setBack(61_000)).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("no minute has more attempts than allowed, and everything in line gets its turn, whatever comes when", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 60 }), (arrivals) => {
      const times = arrivals.toSorted((a, b) => a - b);
      const attemptsAt: number[] = [];
      const told: number[] = [];
      let next = 0;
      for (let now = 0; now < 2_000_000 && told.length < times.length;) {
        while (next < times.length && times[next]! <= now) next++;
        const backlog: Backlog = {
          freshSince: told.length < next ? times[told.length]! : null,
          recent: times.filter((time) => time <= now && time > now - pace.digestMs).length,
          retry: null,
        };
        const decided = nextStep(backlog, { ...NEW, attemptsAt }, pace, now, now);
        if (decided.kind === "begin") {
          attemptsAt.push(now);
          while (told.length < next) told.push(now);
        } else if (decided.kind === "wait") {
          const until = decided.until ?? Infinity;
          expect(until).toBeGreaterThan(now);
          // It is woken when something comes.
          now = Math.min(until, times[next] ?? Infinity);
        }
      }
      expect(told).toHaveLength(times.length);
      for (const at of attemptsAt) {
        expect(attemptsAt.filter((other) => other >= at && other < at + 60_000).length).toBeLessThanOrEqual(3);
      }
      for (const [i, at] of told.entries()) expect(at - times[i]!).toBeLessThanOrEqual(2 * 60_000);
    }),
  );
});

test("waits grow, are never the same for all, and have an end", () => {
  expect([1, 2, 3].map((failures) => waitAfter(failures, 1))).toEqual([5000, 10_000, 20_000]);
  expect(waitAfter(1, 0)).toBe(2500);
  expect(waitAfter(1000, 1)).toBe(900_000);
});
