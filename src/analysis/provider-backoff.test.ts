import { expect, test } from "vitest";
import { ProviderBackoff } from "./provider-backoff.ts";

const MINUTE_MS = 60_000;
const slow = { error: "no answer within 30 s", isFinal: false };
const refused = { error: "answered 401", isFinal: true };

test("the third consecutive failure starts a backoff of a minute", () => {
  const pause = new ProviderBackoff();
  pause.failed(slow, 0);
  pause.failed(slow, 1);
  expect(pause.at(2)).toBeUndefined();
  pause.failed(slow, 2);
  expect(pause.at(2)).toMatchObject({ until: 2 + MINUTE_MS, reason: slow.error });
  expect(pause.at(2 + MINUTE_MS)).toBeUndefined();
});

test("each failure after a backoff starts one twice as long, up to an hour, until a success", () => {
  const pause = new ProviderBackoff();
  const lengths: number[] = [];
  let now = 0;
  for (let i = 0; i < 9; i++) {
    pause.failed(i === 0 ? refused : slow, now);
    const { until } = pause.at(now)!;
    lengths.push((until - now) / MINUTE_MS);
    now = until;
  }
  expect(lengths).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  pause.succeeded();
  pause.failed(slow, now);
  expect(pause.at(now)).toBeUndefined();
  pause.failed(refused, now);
  expect(pause.at(now)!.until).toBe(now + MINUTE_MS);
});

test("concurrent failures start one backoff, and a success ends it early", () => {
  const pause = new ProviderBackoff();
  for (let i = 0; i < 4; i++) pause.failed(refused, i);
  expect(pause.at(4)!.until).toBe(MINUTE_MS);
  pause.succeeded();
  expect(pause.at(4)).toBeUndefined();
});

test("the service may prolong the backoff up to an hour, but not shorten it", () => {
  const until = (retryAfterMs: number) => {
    const pause = new ProviderBackoff();
    pause.failed({ ...refused, retryAfterMs }, 0);
    return pause.at(0)!;
  };
  expect(until(5 * MINUTE_MS)).toMatchObject({ until: 5 * MINUTE_MS, askedForUntil: 5 * MINUTE_MS });
  expect(until(1000)).toMatchObject({ until: MINUTE_MS, askedForUntil: 1000 });
  expect(until(1e12).until).toBe(60 * MINUTE_MS);
});
