import { useQuery } from "@tanstack/react-query";
import { Sparkline } from "../../components/charts/sparkline.tsx";
import { useNow } from "../../components/time/use-range.ts";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { collectorsQuery } from "../../data/site.ts";
import { sourcesOf, type Health } from "../../data/sources.ts";
import { exact, short } from "../../text/numbers.ts";

const REFRESH_MS = 30_000;
const SHOWN = 6;
const MARK: Record<Health, { icon: IconName; word: string; look: string }> = {
  receiving: { icon: "circle-check", word: "receiving", look: "text-good" },
  trouble: { icon: "triangle-alert", word: "needs a look", look: "text-high" },
  silent: { icon: "pause", word: "silent", look: "text-ink3" },
};

export function SourcesHealth() {
  const collectors = useQuery(collectorsQuery(REFRESH_MS));
  const nowMs = useNow();
  const sources = collectors.data && sourcesOf(collectors.data, nowMs);
  return (
    <>
      <SectionHeading
        right={
          <ScreenLink to="/sources" className="text-xs font-medium text-accent hover:underline">
            {sources === undefined || sources.length <= SHOWN ? "Sources" : `All ${exact(sources.length)}`}
          </ScreenLink>
        }
      >
        Sources
      </SectionHeading>
      <div className="min-h-56">
        {collectors.error !== null && sources === undefined ? (
          <Failure error={collectors.error} onRetry={() => void collectors.refetch()} />
        ) : sources === undefined ? (
          <Skeleton className="h-56" />
        ) : sources.length === 0 ? (
          <Empty title="Nothing sends to this service">
            <ScreenLink to="/sources" search={{ connect: "choose" }} className="text-accent underline">
              Connect a source
            </ScreenLink>
          </Empty>
        ) : (
          <ul>
            {sources.slice(0, SHOWN).map((source) => {
              const { icon, word, look } = MARK[source.health];
              return (
                <li key={source.id} className="border-b border-line last:border-0">
                  <ScreenLink
                    to="/sources"
                    search={{ source: source.id }}
                    className="grid grid-cols-[minmax(0,1fr)_120px_90px_110px] items-center gap-3 rounded-md px-1 py-2 hover:bg-hover/60 max-md:grid-cols-[minmax(0,1fr)_110px]"
                  >
                    <span className="min-w-0">
                      <span className="mono block truncate text-xs">{source.name}</span>
                      <span className="block truncate text-2xs text-ink3">{source.kind}</span>
                    </span>
                    <span className="max-md:hidden">
                      <Sparkline values={source.history} label={`${source.unit} a minute over the last hour`} />
                    </span>
                    <span className="text-right text-xs text-ink2 max-md:hidden">{short(source.perMinute)}/min</span>
                    <span className={`flex items-center justify-end gap-1.5 text-xs ${look}`}>
                      <Icon name={icon} size={13} />
                      {word}
                    </span>
                  </ScreenLink>
                </li>
              );
            })}
          </ul>
        )}
      </div>
    </>
  );
}
