import { serveThread } from "../../lib/thread.ts";
import type { Rule } from "../../model/rule.ts";
import type { RuleTest } from "../../model/rule-test.ts";
import { runRuleTests, type TestOutcome } from "./rule-tests.ts";

// Runs the tests of a rule off the thread that serves requests: a million repeated events take seconds.

const api = {
  run(rule: Rule, tests: readonly RuleTest[]): Pick<TestOutcome, "expected" | "actual" | "faults">[] {
    return runRuleTests(rule, tests).map(({ expected, actual, faults }) => ({ expected, actual, faults }));
  },
};
export type RuleTestsApi = typeof api;

serveThread(api);
