import { useQuery } from "@tanstack/react-query";
import { duration } from "../../components/time/format.ts";
import { Panel } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { handlingTimesQuery, type TimeSpan } from "../../data/home.ts";
import { percent } from "../../text/numbers.ts";

export function HandlingTimes({ span }: { span: TimeSpan }) {
  const { data, error } = useQuery(handlingTimesQuery(span));
  const common = { hasFailed: error !== null && data === undefined };
  return (
    <>
      <Average
        {...common}
        name="To the first look"
        now={data?.now.secondsToLook}
        before={data?.earlier.secondsToLook}
      />
      <Average {...common} name="To closed" now={data?.now.secondsToClose} before={data?.earlier.secondsToClose} />
    </>
  );
}

interface AverageProps {
  readonly name: string;
  /** Undefined while it loads, null where no alert counts. */
  readonly now: number | null | undefined;
  readonly before: number | null | undefined;
  readonly hasFailed: boolean;
}

function Average({ name, now, before, hasFailed }: AverageProps) {
  return (
    <Panel className="min-h-28">
      <h2 className="text-xs font-semibold text-ink2">{name}</h2>
      <p className="mt-2 text-[26px] leading-none font-semibold tracking-tight">
        {now === undefined ? "" : now === null ? "no alert yet" : duration(now * 1000)}
      </p>
      {hasFailed ? <p className="text-2xs text-ink3">Could not be loaded.</p> : <Change now={now} before={before} />}
    </Panel>
  );
}

/** Shorter is better. */
function Change({ now, before }: Pick<AverageProps, "now" | "before">) {
  if (now === undefined) return null;
  if (now === null || before === null || before === undefined || before === 0) {
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
