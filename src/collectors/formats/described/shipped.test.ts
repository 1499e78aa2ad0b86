import { describe, expect, test } from "vitest";
import { knownFormats } from "../known-formats.ts";
import { runLineTest } from "./line-tests.ts";
import { readShipped } from "./shipped.ts";

describe.each(readShipped())("$format", (description) => {
  test.each(description.tests)("$line", (one) => {
    expect(runLineTest(one, description.format, knownFormats())).toEqual([]);
  });
});
