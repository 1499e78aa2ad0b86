import { useQuery } from "@tanstack/react-query";
import { duration } from "../../components/time/format.ts";
import { Button } from "../../components/ui/button.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import { handlingTimesQuery, type TimeSpan } from "../../data/home.ts";
import { percent } from "../../text/numbers.ts";

export function HandlingTimes({ span }: { span: TimeSpan }) {
  const { data, error, isPlaceholderData, refetch } = useQuery(handlingTimesQuery(span));
  const state = {
    error: data === undefined ? error : null,
    isDimmed: isPlaceholderData,
    onRetry: () => void refetch(),
  };
  return (
    <>
      <Average name="To the first look" now={data?.now.secondsToLook} before={data?.earlier.secondsToLook} {...state} />
      <Average name="To closed" now={data?.now.secondsToClose} before={data?.earlier.secondsToClose} {...state} />
    </>
  );
}

interface AverageProps {
  readonly name: string;
  /** Undefined while it loads, null where no alert counts. */
  readonly now: number | null | undefined;
  readonly before: number | null | undefined;
  readonly error: Error | null;
  readonly isDimmed: boolean;
  readonly onRetry: () => void;
}

function Average({ name, now, before, error, isDimmed, onRetry }: AverageProps) {
  return (
    <Panel className="min-h-28">
      <h2 className="text-xs font-semibold text-ink2">{name}</h2>
      {error !== null ? (
        <Button look="quiet" icon="refresh-cw" title={error.message} className="mt-2" onClick={onRetry}>
          Try again
        </Button>
      ) : now === undefined ? (
        <Skeleton className="mt-2 h-12" />
      ) : (
        <div aria-busy={isDimmed} className={isDimmed ? "opacity-60" : ""}>
          <p className="mt-2 text-[26px] leading-none font-semibold tracking-tight">
            {now === null ? "no alert yet" : duration(now * 1000)}
          </p>
          <Change now={now} before={before} />
        </div>
      )}
    </Panel>
  );
}

/** Shorter is better. */
function Change({ now, before }: Pick<AverageProps, "now" | "before">) {
  if (now === undefined || now === null || before === null || before === undefined || before === 0) {
    return <p className="mt-2 text-2xs text-ink3">on average; nothing before to compare with</p>;
  }
  const isShorter = now <= before;
  const share = Math.abs(now - before) / before;
  return (
    <p className={`mt-2 flex items-center gap-1 text-2xs ${isShorter ? "text-good" : "text-high"}`}>
      <Icon name={isShorter ? "chevron-down" : "chevron-up"} size={13} />
      {percent(share)} {isShorter ? "shorter" : "longer"} than in the period before
    </p>
  );
}
