import * as fc from "fast-check";
import { expect, test } from "vitest";
import { makeRing, RingReader, RingWriter } from "./ring.ts";

test("what goes in comes out in order, whatever the lengths and however full it gets; what finds no room is refused", () => {
  const step = fc.oneof(
    fc.record({ push: fc.nat(700), from: fc.ipV4() }),
    fc.record({ read: fc.integer({ min: 1, max: 5 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const memory = makeRing(2048);
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
          else expect(writer.used, "refused only when there is something in the way").toBeGreaterThan(600);
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
  const writer = new RingWriter(makeRing(1024));
  expect(writer.push("192.0.2.1", 1, new Uint8Array(2000))).toBe(false);
  expect(writer.push("192.0.2.1", 1, new Uint8Array(200))).toBe(true);
});

test("the reader is woken once each time it sleeps, and does not sleep on something that came meanwhile", () => {
  const memory = makeRing(1024);
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)];
  expect(writer.wakes()).toBe(true);
  expect(writer.wakes()).toBe(false);
  expect(reader.sleeps()).toBe(true);
  expect(writer.wakes()).toBe(true);
  writer.push("192.0.2.1", 1, new Uint8Array(8));
  expect(reader.sleeps(), "there is something to read").toBe(false);
  reader.read(9, () => undefined);
  expect(reader.sleeps()).toBe(true);
});
