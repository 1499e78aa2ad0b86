import { expect, test } from "vitest";
import { RecentValues } from "./recent-values.ts";

test("values in use stay, unused values are evicted, and the limit holds", () => {
  const values = new RecentValues<{ n: number }>(10);
  values.set("kept", { n: -1 });
  for (let n = 0; n < 100; n++) {
    expect(values.get("kept")).toEqual({ n: -1 });
    values.set(`${n}`, { n });
  }
  const left = Array.from({ length: 100 }, (_, n) => n).filter((n) => values.get(`${n}`));
  expect(left.length).toBeLessThanOrEqual(10);
  expect(left).toContain(99);
  values.clear();
  expect(values.get("kept")).toBeUndefined();
});
