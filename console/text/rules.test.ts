import { expect, test } from "vitest";
import { dedupWords, descriptionParts, durationWords, firingWords } from "./rules.ts";

const plain = {
  threshold: null,
  window: null,
  absence: null,
  group_by: null,
  sequence: null,
  sequence_order: "in_order",
  sequence_min: null,
} as const;

test("a duration is said in words", () => {
  expect(durationWords("5m")).toBe("5 minutes");
  expect(durationWords("1d")).toBe("1 day");
  expect(durationWords("soon")).toBe("soon");
});

test("every kind of rule says when it raises an alert", () => {
  expect(firingWords(plain)).toBe("On every such event.");
  expect(
    firingWords({
      ...plain,
      window: "5m",
      threshold: { count: 20, group_by: ["raw.src_ip", "raw.dst_port"], distinct: "raw.dst_ip" },
    }),
  ).toBe(
    "When there are 20 or more different values of destination address within 5 minutes, counted for each source address and destination port on its own.",
  );
  expect(firingWords({ ...plain, window: "10m", threshold: { sum: "raw.bytes_out", gt: 1_000_000_000 } })).toBe(
    "When the sum of bytes out is more than 1,000,000,000 within 10 minutes.",
  );
  expect(firingWords({ ...plain, window: "1h", threshold: { lt: 5, group_by: "raw.camera" } })).toBe(
    "When there are less than 5 such events within 1 hour, counted for each camera on its own.",
  );
  expect(firingWords({ ...plain, absence: "26h", group_by: "raw.job" })).toBe(
    "When no such event comes for 26 hours after the last one, counted for each job on its own.",
  );
  const steps = [
    { name: "a", count: 1 },
    { name: "b", count: 1 },
  ];
  expect(firingWords({ ...plain, window: "10m", sequence: steps })).toBe(
    "When these happen in this order within 10 minutes.",
  );
  expect(
    firingWords({
      ...plain,
      window: "1h",
      sequence: steps,
      sequence_order: "any",
      sequence_min: 1,
      group_by: "raw.src_ip",
    }),
  ).toBe("When 1 of these happen, in any order, within 1 hour, for the same source address.");
});

test("which findings share an alert is said with the group of the rule", () => {
  expect(
    dedupWords({ dedup: { period: "1h", by: null }, threshold: { count: 2, group_by: "raw.src_ip" }, group_by: null }),
  ).toBe("Findings with the same source address that lie less than 1 hour apart join one alert.");
});

test("a description is what it means and what to do", () => {
  expect(descriptionParts("A door\nwas forced.\n\nLook at\nthe recording.\n\n")).toEqual({
    what: "A door was forced.",
    todo: ["Look at the recording."],
  });
});
