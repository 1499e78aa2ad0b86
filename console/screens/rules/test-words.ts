import type { RuleTestResult } from "../../data/rules.ts";
import { exact } from "../../text/numbers.ts";

/** "3 of 3 pass", "2 of 3 pass, 1 fails". */
export function summaryWords({ passed, failed }: Pick<RuleTestResult, "passed" | "failed">): string {
  const all = `${exact(passed)} of ${exact(passed + failed)} ${passed === 1 && failed === 0 ? "passes" : "pass"}`;
  return failed === 0 ? all : `${all}, ${exact(failed)} ${failed === 1 ? "fails" : "fail"}`;
}

/** The names of the tests of a draft, which may say anything. */
export function testNames(tests: unknown): string[] {
  if (!Array.isArray(tests)) return [];
  return (tests as unknown[]).map((test, index) => {
    const name = typeof test === "object" && test !== null && "name" in test ? test.name : undefined;
    return typeof name === "string" && name.trim() !== "" ? name : `Test ${index + 1}`;
  });
}

/** A test to begin with: one event of the type that the first condition asks for. */
export function firstTest(conditions: unknown): object {
  const tests = (Array.isArray(conditions) ? conditions : []) as ({ field?: unknown; equals?: unknown } | null)[];
  const type = tests.find((each) => each?.field === "type")?.equals;
  return {
    name: "one event raises an alert",
    events: [{ type: typeof type === "string" && type !== "" ? type : "login_failure", raw: {} }],
    alerts: 1,
  };
}
