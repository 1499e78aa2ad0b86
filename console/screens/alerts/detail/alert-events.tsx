import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Sentence } from "../../../components/entities/sentence.tsx";
import { full } from "../../../components/time/format.ts";
import { Button } from "../../../components/ui/button.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { Failure, Skeleton } from "../../../components/ui/states.tsx";
import { alertEventsQuery } from "../../../data/alert-events.ts";
import type { AlertDetail, Event } from "../../../data/client.ts";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../../text/domains.ts";
import { count, exact } from "../../../text/numbers.ts";

const MINUTE_MS = 60_000;

/** All events of an alert, as far as they are kept. */
export default function AlertEvents({ alert, onClose }: { alert: AlertDetail; onClose: () => void }) {
  const query = useInfiniteQuery(alertEventsQuery(alert.id));
  const events = query.data?.pages.flatMap((page) => page.events) ?? [];
  const listed = query.data?.pages[0]?.listed ?? 0;
  return (
    <Sheet open onClose={onClose} title={count(alert.event_count, "event")} width="wide">
      {query.error !== null && <Failure error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Skeleton className="h-64 w-full" />}
      <ol className="divide-y divide-line">
        {events.map((event) => (
          <EventLine key={event.id} event={event} />
        ))}
      </ol>
      {query.hasNextPage && (
        <Button className="mt-3" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Show more
        </Button>
      )}
      {query.isSuccess && listed < alert.event_count && (
        <p className="mt-3 text-2xs text-ink3">
          The alert keeps the newest {exact(listed)} of its events; all others are on the events screen.
        </p>
      )}
    </Sheet>
  );
}

function EventLine({ event }: { event: Event }) {
  const domain = domainOf(event.source);
  const atMs = Date.parse(event.timestamp);
  const search = {
    event: event.id,
    from: new Date(atMs - MINUTE_MS).toISOString(),
    to: new Date(atMs + MINUTE_MS).toISOString(),
  };
  return (
    <li className="grid grid-cols-[20px_minmax(0,1fr)_auto] items-center gap-3 py-2">
      <Icon name={DOMAIN_ICON[domain]} size={15} label={DOMAIN_WORD[domain]} className="text-ink3" />
      <p className="text-sm wrap-anywhere text-ink2">
        <Sentence event={event} />
      </p>
      <Link
        to="/events"
        search={search as never}
        title="Open on the events screen"
        className="mono text-2xs whitespace-nowrap text-ink3 hover:text-ink hover:underline"
      >
        {full(event.timestamp)}
      </Link>
    </li>
  );
}
