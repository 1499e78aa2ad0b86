import { useMutation } from "@tanstack/react-query";
import { useKeys } from "../../../app/keys.ts";
import { Button } from "../../../components/ui/button.tsx";
import { ApiError, type Fault } from "../../../data/client.ts";
import { testDraft, type RuleInput } from "../../../data/rules.ts";
import { RuleTests } from "../rule-tests.tsx";
import { firstTest, testNames } from "../test-words.ts";
import { faultsOfRule, list, withValue, type Draft } from "./draft.ts";

interface TestsPanelProps {
  readonly rule: Draft;
  readonly isBlocked: boolean;
  readonly onRule: (rule: Draft) => void;
  /** Shows the YAML; undefined while it is shown. */
  readonly onYaml: (() => void) | undefined;
  readonly onFaults: (faults: readonly Fault[]) => void;
}

/** The tests of the rule as it is being written; they are written in the YAML. */
export function TestsPanel({ rule, isBlocked, onRule, onYaml, onFaults }: TestsPanelProps) {
  const names = testNames(rule["tests"]);
  const run = useMutation({
    mutationFn: (draft: RuleInput) => testDraft(draft),
    onSuccess: () => onFaults([]),
    onError: (error) => onFaults(error instanceof ApiError ? faultsOfRule(error.faults) : []),
  });
  const input = rule as unknown as RuleInput;
  const start = () => run.mutate(input);
  const hasFaults = run.error instanceof ApiError && run.error.faults.length > 0;
  useKeys("rules", { test: () => names.length > 0 && !isBlocked && !run.isPending && start() });
  const add = () => {
    onRule(withValue(rule, ["tests", list(rule["tests"]).length], firstTest(rule["conditions"])));
    onYaml?.();
  };
  return (
    <div className="space-y-3">
      <RuleTests
        names={names}
        result={run.data}
        error={hasFaults ? null : run.error}
        isPending={run.isPending}
        isStale={run.variables !== input}
        isBlocked={isBlocked}
        onRun={start}
      />
      {hasFaults && !run.isPending && (
        <p role="alert" className="text-sm text-ink2">
          The rule has faults, which are shown beside it. Mend them, and run the tests again.
        </p>
      )}
      {onYaml !== undefined && (
        <div className="flex flex-wrap gap-2">
          <Button icon="plus" disabled={isBlocked} onClick={add}>
            Test
          </Button>
          {names.length > 0 && (
            <Button icon="pencil" onClick={onYaml}>
              Edit the tests
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
