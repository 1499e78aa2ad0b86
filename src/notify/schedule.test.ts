import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Backlog } from "../store/ports/notification-store.ts";
import { nextQueueStep, PACE, backoffMs, type ChannelHistory } from "./schedule.ts";

const QUIET: Backlog = { freshSince: null, recent: 0, retry: null };
const NEW: ChannelHistory = { attemptsAt: [], pausedUntil: 0, lastWasNew: false };
const pace = { ...PACE, perMinuteMax: 3 };
const NOW = 1_000_000;
const step = (backlog: Partial<Backlog>, past: Partial<ChannelHistory> = {}) =>
  nextQueueStep({ ...QUIET, ...backlog }, { ...NEW, ...past }, pace, NOW, NOW);
const due = { deliveryId: "dlv_1", dueAt: NOW };

test("an empty queue waits for a notification", () => {
  expect(step({})).toEqual({ kind: "wait", until: null });
});

test("a few notifications are gathered briefly, many for up to a minute", () => {
  expect(step({ freshSince: NOW - 1999, recent: 5 })).toEqual({ kind: "wait", until: NOW + 1 });
  expect(step({ freshSince: NOW - 2000, recent: 5 })).toEqual({ kind: "begin" });
  expect(step({ freshSince: NOW - 2000, recent: 6 })).toEqual({ kind: "wait", until: NOW + 58_000 });
  expect(step({ freshSince: NOW - 60_000, recent: 6 })).toEqual({ kind: "begin" });
});

test("due retries alternate with new messages", () => {
  expect(step({ retry: { ...due, dueAt: NOW + 5 } })).toEqual({ kind: "wait", until: NOW + 5 });
  expect(step({ retry: due })).toEqual({ kind: "again", deliveryId: "dlv_1" });
  const both = { retry: due, freshSince: NOW - 2000 };
  expect(step(both)).toEqual({ kind: "begin" });
  expect(step(both, { lastWasNew: true })).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("a channel is paused by Retry-After and by its limit per minute", () => {
  expect(step({ retry: due }, { pausedUntil: NOW + 9 })).toEqual({ kind: "wait", until: NOW + 9 });
  const attemptsAt = [NOW - 50_000, NOW - 40_000, NOW - 1];
  expect(step({ retry: due }, { attemptsAt })).toEqual({ kind: "wait", until: NOW + 10_000 });
  expect(step({ retry: due }, { attemptsAt: attemptsAt.slice(1) })).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("a clock set back delays nothing", () => {
  const hour = 3_600_000;
  expect(step({ freshSince: NOW + hour, recent: 1 })).toEqual({ kind: "begin" });
  expect(step({ freshSince: NOW + hour, recent: 100 })).toEqual({ kind: "begin" });
  expect(step({ retry: { ...due, dueAt: NOW + hour } })).toEqual({ kind: "wait", until: NOW + hour });
  expect(step({ retry: { ...due, dueAt: NOW + hour + 1 } })).toEqual({ kind: "again", deliveryId: "dlv_1" });
  const past = { ...NEW, pausedUntil: 5000, attemptsAt: [1000, 2000, 3000] };
  const setBack = (steadyNow: number) => nextQueueStep({ ...QUIET, retry: due }, past, pace, NOW, steadyNow);
  expect(setBack(4000)).toEqual({ kind: "wait", until: NOW + 57_000 });
  expect(setBack(61_000)).toEqual({ kind: "again", deliveryId: "dlv_1" });
});

test("no minute exceeds its attempts, and everything queued is sent, in any order of arrival", () => {
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
        const decided = nextQueueStep(backlog, { ...NEW, attemptsAt }, pace, now, now);
        if (decided.kind === "begin") {
          attemptsAt.push(now);
          while (told.length < next) told.push(now);
        } else if (decided.kind === "wait") {
          const until = decided.until ?? Infinity;
          expect(until).toBeGreaterThan(now);
          // A new notification wakes it.
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

test("backoff grows, has jitter and is bounded", () => {
  expect([1, 2, 3].map((failures) => backoffMs(failures, 1))).toEqual([5000, 10_000, 20_000]);
  expect(backoffMs(1, 0)).toBe(2500);
  expect(backoffMs(1000, 1)).toBe(900_000);
});
