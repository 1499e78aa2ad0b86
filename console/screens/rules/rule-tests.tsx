import { Button } from "../../components/ui/button.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Failure } from "../../components/ui/states.tsx";
import type { RuleTestResult } from "../../data/rules.ts";
import { summaryWords } from "./test-words.ts";

interface RuleTestsProps {
  readonly names: readonly string[];
  readonly result: RuleTestResult | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  /** The rule was changed after its tests were run. */
  readonly isStale?: boolean;
  readonly isBlocked?: boolean;
  readonly onRun: () => void;
}

/** The tests of a rule, and how they came out. */
export function RuleTests({
  names,
  result,
  error,
  isPending,
  isStale = false,
  isBlocked = false,
  onRun,
}: RuleTestsProps) {
  const shown = isPending || isStale ? undefined : result;
  return (
    <section aria-label="Tests">
      <SectionHeading
        right={
          names.length > 0 && (
            <Button icon="play" hint="R" className="h-7 px-2 text-xs" disabled={isPending || isBlocked} onClick={onRun}>
              Run the tests
            </Button>
          )
        }
      >
        Tests
      </SectionHeading>
      <p role="status" className={`text-sm ${shown === undefined ? "text-ink2" : "font-medium"}`}>
        {isPending
          ? "Running…"
          : shown !== undefined
            ? summaryWords(shown)
            : isStale && result !== undefined
              ? "The rule has changed since they ran. Run them again."
              : names.length === 0
                ? "This rule has no tests: events that must raise an alert, and events that must not."
                : ""}
      </p>
      {error !== null && !isPending && <Failure error={error} onRetry={onRun} />}
      {names.length > 0 && (
        <ul className="mt-2 divide-y divide-line rounded-lg border border-line bg-panel text-sm">
          {names.map((name, index) => (
            // Two tests may have one name.
            // oxlint-disable-next-line react/no-array-index-key
            <OneTest key={index} name={name} outcome={shown?.tests[index]} />
          ))}
        </ul>
      )}
    </section>
  );
}

function OneTest({ name, outcome }: { name: string; outcome: RuleTestResult["tests"][number] | undefined }) {
  const hasFailed = outcome?.passed === false;
  return (
    <li className="flex gap-2.5 px-3 py-2">
      {outcome === undefined ? (
        <Icon name="minus" size={15} className="mt-0.5 shrink-0 text-ink3" />
      ) : (
        <Icon
          name={hasFailed ? "x" : "check"}
          size={15}
          className={`mt-0.5 shrink-0 ${hasFailed ? "text-critical" : "text-accent"}`}
        />
      )}
      <div className="min-w-0 flex-1 break-words">
        {name}
        {hasFailed && (
          <dl className="mt-1 grid grid-cols-[auto_minmax(0,1fr)] gap-x-2 text-xs text-ink2">
            <dt className="text-ink3">Expected</dt>
            <dd>{outcome.expected}</dd>
            <dt className="text-ink3">Came</dt>
            <dd>{outcome.actual}</dd>
          </dl>
        )}
      </div>
      {outcome !== undefined && (
        <span className={`shrink-0 text-xs ${hasFailed ? "font-medium text-critical" : "text-ink3"}`}>
          {hasFailed ? "fails" : "passes"}
        </span>
      )}
    </li>
  );
}
