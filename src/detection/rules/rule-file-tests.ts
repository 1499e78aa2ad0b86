import { toRule, type RuleDocument } from "./rule-file.ts";
import { runRuleTests, type TestOutcome } from "./rule-tests.ts";

export interface FileTestOutcome extends TestOutcome {
  readonly document: RuleDocument;
}

/** Runs the tests in rule files. */
export function runFileTests(documents: readonly RuleDocument[]): FileTestOutcome[] {
  return documents.flatMap((document) =>
    runRuleTests(toRule(document, { builtin: false }), document.input.tests).map((outcome) => ({
      ...outcome,
      document,
    })),
  );
}
