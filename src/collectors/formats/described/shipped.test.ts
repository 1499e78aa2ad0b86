import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { knownFormats } from "../known-formats.ts";
import { runLineTest } from "./line-tests.ts";
import { readShipped, readShippedFrom } from "./shipped.ts";

describe.each(readShipped())("$format", (description) => {
  test.each(description.tests)("$line", (one) => {
    expect(runLineTest(one, description.format, knownFormats())).toEqual([]);
  });
});

test("validated descriptions are cached for the same texts, and read again when one changes", () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-shipped-"));
  const describeKettle = (type: string) => `format: kettle
about: kettles
match: { begins: kettle }
events: [{ pattern: "kettle {message:rest}", type: ${type}, severity: low }]
tests: [{ line: kettle boils }]
`;
  const file = join(folder, "kettle.yaml");
  const typesRead = () => readShippedFrom(folder, folder).map(({ events }) => events[0]!.type);
  writeFileSync(file, describeKettle("kettle_boiled"));
  const uncached = readShippedFrom(folder, undefined);
  expect(readShippedFrom(folder, folder)).toEqual(uncached);
  const cache = join(folder, "shipped-formats.json");
  writeFileSync(cache, readFileSync(cache, "utf8").replaceAll("kettle_boiled", "from_the_cache"));
  expect(typesRead()).toEqual(["from_the_cache"]);
  writeFileSync(file, describeKettle("kettle_cooled"));
  expect(typesRead()).toEqual(["kettle_cooled"]);
  writeFileSync(cache, "spoiled");
  expect(typesRead()).toEqual(["kettle_cooled"]);
  writeFileSync(file, describeKettle("Kettle Cooled"));
  expect(typesRead).toThrow("shipped/kettle.yaml:4: events[0].type");
  rmSync(folder, { recursive: true });
});
