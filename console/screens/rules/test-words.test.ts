import { expect, test } from "vitest";
import { firstTest, summaryWords, testNames } from "./test-words.ts";

test.each([
  [3, 0, "3 of 3 pass"],
  [1, 0, "1 of 1 passes"],
  [2, 1, "2 of 3 pass, 1 fails"],
  [0, 2, "0 of 2 pass, 2 fail"],
])("%i pass, %i fail: %s", (passed, failed, words) => expect(summaryWords({ passed, failed })).toBe(words));

test("a draft may say anything about its tests", () => {
  expect(testNames([{ name: "a" }, { name: " " }, null, "b"])).toEqual(["a", "Test 2", "Test 3", "Test 4"]);
  expect(testNames("none")).toEqual([]);
});

test("the first test has an event that the rule asks for", () => {
  expect(firstTest([null, { field: "type", equals: "motion" }])).toMatchObject({ events: [{ type: "motion" }] });
  expect(firstTest("x")).toMatchObject({ events: [{ type: "login_failure" }] });
});
