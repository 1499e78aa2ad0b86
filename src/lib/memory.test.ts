import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { allowedMemory, memoryShare } from "./memory.ts";

const MIB = 2 ** 20;
const bounds = { min: 64 * MIB, max: 1024 * MIB };

test("the process may use no more than the machine has", () => {
  expect(allowedMemory()).toBeGreaterThan(0);
  expect(allowedMemory()).toBeLessThanOrEqual(totalmem());
});

test("a share is a quarter of what the service leaves, within its bounds", () => {
  expect(memoryShare(bounds, 24 * 1024 * MIB)).toBe(1024 * MIB);
  expect(memoryShare(bounds, 2048 * MIB)).toBe(384 * MIB);
  expect(memoryShare(bounds, 1024 * MIB)).toBe(128 * MIB);
  expect(memoryShare(bounds, 256 * MIB)).toBe(64 * MIB);
});

test("three shares and the service fit into a gibibyte", () => {
  expect(512 * MIB + 3 * memoryShare(bounds, 1024 * MIB)).toBeLessThan(1024 * MIB);
});
