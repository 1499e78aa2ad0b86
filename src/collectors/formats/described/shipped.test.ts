import { describe, expect, test } from "vitest";
import { CONTEXT } from "../context.fixture.ts";
import { runLineTest } from "./line-tests.ts";
import { readShipped } from "./shipped.ts";

describe.each(readShipped())("$description.format", ({ description, format }) => {
  test.each(description.tests)("$line", (one) => {
    expect(runLineTest(one, format.name, CONTEXT)).toEqual([]);
  });
});
