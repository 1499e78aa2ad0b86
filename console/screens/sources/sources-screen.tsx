import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useNow } from "../../components/time/use-range.ts";
import { Button } from "../../components/ui/button.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { collectorsQuery, isWhole, siteQuery } from "../../data/site.ts";
import { count } from "../../text/numbers.ts";
import { ConnectSheet } from "./connect-sheet.tsx";
import { SourceRow } from "./source-row.tsx";
import { sourcesOf } from "../../data/sources.ts";

const REFRESH_MS = 5000;

/** What sends to this service, how much, and whether it is understood. */
export function SourcesScreen() {
  const search = useSearch({ from: "/sources" });
  const navigate = useNavigate({ from: "/sources" });
  const collectors = useQuery(collectorsQuery(REFRESH_MS));
  const site = useQuery(siteQuery);
  const nowMs = useNow();
  const connect = (guide: string | undefined) =>
    void navigate({ search: (previous) => ({ ...previous, connect: guide }) });
  const open = (id: string | undefined) =>
    void navigate({ replace: true, search: (previous) => ({ ...previous, source: id }) });
  const sources = collectors.data && sourcesOf(collectors.data, nowMs);
  const troubled = sources?.filter(({ health }) => health === "trouble").length ?? 0;
  return (
    <main className="h-full overflow-y-auto p-4">
      <div className="mx-auto max-w-6xl space-y-4">
        <div className="flex items-center gap-3">
          <h1 className="text-lg font-semibold tracking-tight">Sources</h1>
          {sources !== undefined && sources.length > 0 && (
            <p className="text-sm text-ink2">
              {count(sources.length, "source")}
              {troubled > 0 && `, ${troubled} in trouble`}
            </p>
          )}
          <Button look="primary" icon="plus" className="ml-auto" onClick={() => connect("choose")}>
            Connect
          </Button>
        </div>
        {collectors.error !== null && sources === undefined ? (
          <Failure error={collectors.error} onRetry={() => void collectors.refetch()} />
        ) : sources === undefined ? (
          <Skeleton className="h-96" />
        ) : sources.length === 0 ? (
          <Panel>
            <Empty title="Nothing sends to this service yet">
              <p className="mb-3">
                Connect a gateway, a switch, cameras or doors: it takes a minute, and you see the first line arrive.
              </p>
              <Button look="primary" icon="plus" onClick={() => connect("choose")}>
                Connect a source
              </Button>
            </Empty>
          </Panel>
        ) : (
          <Panel isFlush>
            <ul aria-label="Sources">
              {sources.map((source) => (
                <SourceRow
                  key={source.id}
                  source={source}
                  nowMs={nowMs}
                  isOpen={search.source === source.id}
                  onToggle={() => open(search.source === source.id ? undefined : source.id)}
                />
              ))}
            </ul>
          </Panel>
        )}
      </div>
      {search.connect !== undefined && site.data !== undefined && isWhole(site.data) && (
        <ConnectSheet site={site.data} guideId={search.connect} onGuide={connect} onClose={() => connect(undefined)} />
      )}
    </main>
  );
}
