import { totalmem } from "node:os";
import { expect, test } from "vitest";
import { allowedMemory, responseCharactersMax, responsesCharactersMax, memoryShare } from "./memory.ts";

const MIB = 2 ** 20;
const bounds = { min: 64 * MIB, max: 1024 * MIB };

test("the process may use no more memory than the machine has", () => {
  expect(allowedMemory()).toBeGreaterThan(0);
  expect(allowedMemory()).toBeLessThanOrEqual(totalmem());
});

test("a share is a quarter of the memory beyond the service's own, within its bounds", () => {
  expect(memoryShare(bounds, 24 * 1024 * MIB)).toBe(1024 * MIB);
  expect(memoryShare(bounds, 2048 * MIB)).toBe(384 * MIB);
  expect(memoryShare(bounds, 1024 * MIB)).toBe(128 * MIB);
  expect(memoryShare(bounds, 256 * MIB)).toBe(64 * MIB);
});

test("two engines, the responses and the service fit into a gibibyte", () => {
  const allowed = 1024 * MIB;
  expect(512 * MIB + 2 * memoryShare(bounds, allowed) + 2 * responsesCharactersMax(allowed)).toBeLessThanOrEqual(
    allowed,
  );
});

test("one response takes less than one client's half of all responses, and up to 64 MiB with enough memory", () => {
  for (const allowed of [512, 1024, 2048, 24 * 1024].map((mib) => mib * MIB)) {
    expect(responseCharactersMax(allowed)).toBeLessThan(responsesCharactersMax(allowed) / 2);
  }
  expect(responseCharactersMax(1024 * MIB)).toBeGreaterThan(20 * MIB);
  expect(responseCharactersMax(2048 * MIB)).toBe(64 * MIB);
});
