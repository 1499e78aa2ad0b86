import { expect, test } from "vitest";
import { bucketKey, bucketNumbers } from "./histogram-buckets.ts";

test.each([0.1, 0.01, 0.7, 0.25, 1.1, 3, 0.007, 1e-3, 2.5e-2])(
  "a multiple of %d as it is written begins a bucket, and the number before it belongs to the one before",
  (interval) => {
    const bucketOf = bucketNumbers({ interval, isTime: false });
    for (let bucket = -300; bucket <= 300; bucket++) {
      const key = bucketKey({ interval, isTime: false }, bucket) as number;
      expect(bucketOf(key)).toBe(bucket);
      expect(bucketOf(key - interval / 1000)).toBe(bucket - 1);
    }
  },
);
