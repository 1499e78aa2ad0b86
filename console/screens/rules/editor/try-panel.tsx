import { Button } from "../../../components/ui/button.tsx";
import { Failure, Skeleton } from "../../../components/ui/states.tsx";
import { ApiError, SEVERITIES, type Severity } from "../../../data/client.ts";
import type { Simulation } from "../../../data/rules.ts";
import { useMay } from "../../../data/session.ts";
import { SimulationResult } from "../try-it.tsx";
import type { Draft } from "./draft.ts";

interface TryPanelProps {
  readonly rule: Draft;
  readonly result: Simulation | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  /** The rule was changed after it was tried. */
  readonly isStale: boolean;
  readonly isBlocked: boolean;
  readonly onTry: () => void;
}

export function TryPanel({ rule, result, error, isPending, isStale, isBlocked, onTry }: TryPanelProps) {
  const mayTry = useMay("events:read");
  const severity: Severity = SEVERITIES.find((each) => each === rule["severity"]) ?? "medium";
  return (
    <section aria-label="Try it" className="space-y-4">
      <div className="flex items-center gap-3">
        <h2 className="text-xs font-semibold">On the last 7 days</h2>
        <Button
          icon="play"
          className="ml-auto"
          disabled={!mayTry || isPending || isBlocked}
          title={mayTry ? undefined : "Your key lacks the scope events:read."}
          onClick={onTry}
        >
          Try it
        </Button>
      </div>
      {isPending ? (
        <Skeleton className="h-64" />
      ) : error !== null ? (
        error instanceof ApiError && error.faults.length > 0 ? (
          <p role="alert" className="text-sm text-ink2">
            The rule has faults, which are shown beside it. Mend them, and try again.
          </p>
        ) : (
          <Failure error={error} onRetry={onTry} />
        )
      ) : result === undefined ? (
        <p className="text-sm text-ink2">
          Runs the rule over the events of the last week, as if it had been there. Nothing is stored, and nobody is
          told.
        </p>
      ) : (
        <div>
          {isStale && <p className="mb-2 text-xs text-ink3">The rule has changed since then. Try it again.</p>}
          <SimulationResult result={result} severity={severity} />
        </div>
      )}
    </section>
  );
}
