import { expect, test } from "vitest";
import { nearestName } from "./nearest.ts";

const NAMES = ["port", "host", "platform", "log_level", "TOCSIN_DATA_DIR"];

test.each([
  ["prot", "port"],
  ["pot", "port"],
  ["ports", "port"],
  ["HOST", "host"],
  ["platfrom", "platform"],
  ["loglevel", "log_level"],
  ["TOCSIN_DATADIR", "TOCSIN_DATA_DIR"],
])("%s is corrected to %s", (word, name) => {
  expect(nearestName(word, NAMES)).toBe(name);
});

test.each(["", "x", "retention", "completely different"])("%j is similar to none", (word) => {
  expect(nearestName(word, NAMES)).toBeUndefined();
});
