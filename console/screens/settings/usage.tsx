import { useQuery } from "@tanstack/react-query";
import { answered, api } from "../../data/client.ts";
import { dateTime } from "../../components/time/format.ts";
import { Panel } from "../../components/ui/heading.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import type { Session } from "../../data/session.ts";
import { exact } from "../../text/numbers.ts";

const REFRESH_MS = 10_000;

/** How much of its limits the key has used, and when the session ends. */
export function Usage() {
  const { data, error, refetch } = useQuery({
    queryKey: ["usage"],
    refetchInterval: REFRESH_MS,
    queryFn: async ({ signal }) => (await answered(api.GET("/v1/session", { signal }))).data,
  });
  if (error !== null && data === undefined) return <Failure error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton className="h-56" />;
  const { key, usage, session } = data;
  return (
    <Panel className="space-y-5">
      <p className="text-sm text-ink2">
        The key <strong className="text-ink">{key.name}</strong> has the plan{" "}
        <strong className="text-ink">{key.plan}</strong>.
        {!usage.enforced && " Limits are switched off on this service."}
      </p>
      <WindowBar name="This minute" window={usage.minute} />
      {usage.day === null ? (
        <p className="text-sm text-ink2">Requests a day are not limited.</p>
      ) : (
        <WindowBar name="Today (UTC)" window={usage.day} />
      )}
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-ink3">Scopes</dt>
        <dd className="mono">{key.scopes.join(", ")}</dd>
        <dt className="text-ink3">Key expires</dt>
        <dd>{key.expires_at === null ? "never" : dateTime(key.expires_at)}</dd>
        {session !== null && (
          <>
            <dt className="text-ink3">Session ends</dt>
            <dd>
              {dateTime(session.idle_ends_at)} unless you do something; {dateTime(session.ends_at)} at the latest
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

function WindowBar({ name, window }: { name: string; window: Session["usage"]["minute"] }) {
  const share = window.limit === 0 ? 0 : window.used / window.limit;
  const text = `${exact(window.used)} of ${exact(window.limit)} requests`;
  return (
    <div>
      <div className="mb-1 flex text-sm">
        <span className="font-medium">{name}</span>
        <span className="ml-auto text-ink2">{text}</span>
      </div>
      <div
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={window.limit}
        aria-valuenow={window.used}
        aria-valuetext={text}
        className="h-2 overflow-hidden rounded-full bg-hover"
      >
        <div className="h-full rounded-full bg-accent" style={{ width: `${Math.min(1, share) * 100}%` }} />
      </div>
    </div>
  );
}
