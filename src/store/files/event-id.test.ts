import * as fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { makeEventId, readEventId } from "./event-id.ts";

const places = fc.record({
  seq: fc.integer({ min: 1, max: 2 ** 40 - 1 }),
  day: fc.integer({ min: 0, max: 65_535 }).map((n) => n * DAY_MS),
});
const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });

test("an id encodes the place of its event and is a UUIDv7", () => {
  fc.assert(
    fc.property(times, places, (arrivedMs, place) => {
      const id = makeEventId(arrivedMs, place);
      expect(id).toMatch(/^evt_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
      expect(readEventId(id)).toEqual({ ...place, arrivedMs });
    }),
  );
});

test("ids sort in the order of arrival, also within a millisecond", () => {
  fc.assert(
    fc.property(times, places, places, (arrivedMs, a, b) => {
      fc.pre(a.seq !== b.seq);
      expect(makeEventId(arrivedMs, a) < makeEventId(arrivedMs, b)).toBe(a.seq < b.seq);
    }),
  );
});

test("a string that is not an event id is rejected", () => {
  for (const id of ["", "evt_", "evt_zz", "key_019a0000000070008000000000000000", `evt_${"0".repeat(32)}`]) {
    expect(readEventId(id)).toBeUndefined();
  }
});
