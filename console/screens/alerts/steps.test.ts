import { expect, test } from "vitest";
import { stepFor } from "./steps.ts";

const HOUR_MS = 3_600_000;

test.each([
  [7 * 24 * HOUR_MS, 84, 2 * HOUR_MS],
  [24 * HOUR_MS, 84, HOUR_MS / 2],
  [HOUR_MS, 84, 60_000],
  [4000 * 24 * HOUR_MS, 84, 48 * 24 * HOUR_MS],
])("a length of %i ms in at most %i parts", (lengthMs, parts, stepMs) => expect(stepFor(lengthMs, parts)).toBe(stepMs));
