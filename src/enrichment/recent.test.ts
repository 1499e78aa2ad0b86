import { expect, test } from "vitest";
import { Recent } from "./recent.ts";

test("what is asked for again and again stays, what is not goes, and there are never more than may be", () => {
  const recent = new Recent<{ n: number }>(10);
  recent.set("kept", { n: -1 });
  for (let n = 0; n < 100; n++) {
    expect(recent.get("kept")).toEqual({ n: -1 });
    recent.set(`${n}`, { n });
  }
  const left = Array.from({ length: 100 }, (_, n) => n).filter((n) => recent.get(`${n}`));
  expect(left.length).toBeLessThanOrEqual(10);
  expect(left).toContain(99);
  recent.clear();
  expect(recent.get("kept")).toBeUndefined();
});
