import { useQuery } from "@tanstack/react-query";
import { Icon } from "../../components/ui/icons.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { isWhole, siteQuery, type WholeSite } from "../../data/site.ts";
import { bytes, count, percent } from "../../text/numbers.ts";

/** How long data is kept, and how much room there is. */
export function Storage() {
  const { data: site, error, refetch } = useQuery(siteQuery);
  if (error !== null && site === undefined) return <Failure error={error} onRetry={() => void refetch()} />;
  if (site === undefined) return <Skeleton className="h-72" />;
  if (!isWhole(site)) {
    return (
      <Empty title="Your key may not see this">
        <p>Retention and disk need the scope events:read.</p>
      </Empty>
    );
  }
  return (
    <>
      <Panel className="space-y-3">
        <h2 className="text-sm font-semibold">Kept for</h2>
        <dl className="grid grid-cols-3 gap-4 max-md:grid-cols-1">
          <Kept name="Events" days={site.retention.events_days} />
          <Kept name="Flows" days={site.retention.flows_days} />
          <Kept name="Resolved alerts" days={site.retention.alerts_days} />
        </dl>
        {site.retention.messages.map((message) => (
          <p key={message} className="flex gap-2 rounded-lg border border-line2 bg-raised px-3 py-2 text-sm">
            <Icon name="triangle-alert" size={16} className="mt-0.5 text-high" />
            {message}
          </p>
        ))}
        <p className="text-xs text-ink3">
          Set in the configuration of the service, under <code className="mono">retention</code>. Alerts that nobody has
          resolved stay.
        </p>
      </Panel>
      <Panel>
        <Disk disk={site.disk} />
      </Panel>
    </>
  );
}

function Kept({ name, days }: { name: string; days: number }) {
  return (
    <div>
      <dt className="text-xs text-ink3">{name}</dt>
      <dd className="text-xl font-semibold">{count(days, "day")}</dd>
    </div>
  );
}

function Disk({ disk }: { disk: WholeSite["disk"] }) {
  const others = Math.max(0, disk.total_bytes - disk.free_bytes - disk.used_bytes);
  const share = (part: number) => `${(part / Math.max(1, disk.total_bytes)) * 100}%`;
  return (
    <>
      <h2 className="mb-3 text-sm font-semibold">Disk</h2>
      <div
        role="img"
        aria-label={`Tocsin uses ${bytes(disk.used_bytes)}, others ${bytes(others)}; ${bytes(disk.free_bytes)} of ${bytes(disk.total_bytes)} are free`}
        className="flex h-3 overflow-hidden rounded-full bg-hover"
      >
        <span className="min-w-1 bg-accent" style={{ width: share(disk.used_bytes) }} />
        <span className="bg-line2" style={{ width: share(others) }} />
      </div>
      <ul className="mt-2 flex flex-wrap gap-x-6 gap-y-1 text-sm text-ink2">
        <li className="flex items-center gap-2">
          <span aria-hidden className="size-2.5 rounded-sm bg-accent" />
          Tocsin {bytes(disk.used_bytes)}
        </li>
        <li className="flex items-center gap-2">
          <span aria-hidden className="size-2.5 rounded-sm bg-line2" />
          others {bytes(others)}
        </li>
        <li>
          free {bytes(disk.free_bytes)} ({percent(disk.free_bytes / Math.max(1, disk.total_bytes))} of{" "}
          {bytes(disk.total_bytes)})
        </li>
      </ul>
    </>
  );
}
