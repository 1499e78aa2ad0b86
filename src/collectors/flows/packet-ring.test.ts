import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createRing, RingReader, RingWriter } from "./packet-ring.ts";

test("datagrams of any length come out in order, and are refused when the ring is full", () => {
  const step = fc.oneof(
    fc.record({ push: fc.nat(700), from: fc.ipV4() }),
    fc.record({ read: fc.integer({ min: 1, max: 5 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const memory = createRing(2048);
      const [writer, reader] = [new RingWriter(memory), new RingReader(memory)];
      const inside: { from: string; at: number; length: number; first: number }[] = [];
      let at = 0;
      const take = (max: number) =>
        reader.read(max, (view, start, end, from, receivedMs) => {
          const { first, ...expected } = inside.shift()!;
          expect({ from, at: receivedMs, length: end - start }).toEqual(expected);
          for (let index = start; index < end; index++) expect(view.getUint8(index)).toBe(first);
        });
      for (const one of steps) {
        if ("read" in one) take(one.read);
        else {
          at++;
          const pushed = writer.push(one.from, at, new Uint8Array(one.push).fill(at));
          if (pushed) inside.push({ from: one.from, at, length: one.push, first: at & 255 });
          else expect(writer.used, "refused only when the ring is in use").toBeGreaterThan(600);
        }
      }
      take(Number.MAX_SAFE_INTEGER);
      expect(inside).toEqual([]);
      expect(writer.used).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test("a datagram larger than the ring is refused", () => {
  const writer = new RingWriter(createRing(1024));
  expect(writer.push("192.0.2.1", 1, new Uint8Array(2000))).toBe(false);
  expect(writer.push("192.0.2.1", 1, new Uint8Array(200))).toBe(true);
});

test("the reader is woken once each time it sleeps, and does not go to sleep while a datagram is waiting", () => {
  const memory = createRing(1024);
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)];
  expect(writer.claimWakeUp()).toBe(true);
  expect(writer.claimWakeUp()).toBe(false);
  expect(reader.trySleep()).toBe(true);
  expect(writer.claimWakeUp()).toBe(true);
  writer.push("192.0.2.1", 1, new Uint8Array(8));
  expect(reader.trySleep(), "a datagram is waiting").toBe(false);
  reader.read(9, () => undefined);
  expect(reader.trySleep()).toBe(true);
});
