import { memo, useMemo, useState } from "react";
import { useKeys } from "../../app/keys.ts";
import type { AxisData } from "../../components/axis/use-axis-data.ts";
import { overlaps, type View } from "../../components/axis/view.ts";
import { startOfDayMs, useZone } from "../../components/time/zone.ts";
import { Button } from "../../components/ui/button.tsx";
import { Segments } from "../../components/ui/segments.tsx";
import { Empty, Skeleton } from "../../components/ui/states.tsx";
import type { AlertDetail, Event } from "../../data/client.ts";
import { count, exact } from "../../text/numbers.ts";
import { StoryList } from "./story-list.tsx";
import { daysOf, storyOf, type Show, type StoryRow } from "./story.ts";

interface StoryProps {
  readonly data: AxisData;
  readonly view: View;
  readonly isFollowing: boolean;
  readonly show: Show;
  readonly thread: readonly Event[];
  readonly echoes: ReadonlySet<string>;
  readonly alert: AlertDetail | undefined;
  readonly marked: string | undefined;
  readonly sought: { readonly id: string } | undefined;
  readonly onShow: (show: Show) => void;
  readonly onMark: (id: string | undefined) => void;
  readonly onSeek: (id: string) => void;
  readonly onAlert: (id: string) => void;
  readonly onZoomOut: () => void;
  readonly hasFilter: boolean;
}

/** What happened, beside the picture that shows it. */
export const Story = memo(function Story(props: StoryProps) {
  const { data, view, isFollowing, show, thread, echoes, alert, marked, sought, onShow, onMark, onSeek, onAlert } =
    props;
  const zone = useZone();
  const numbers = useMemo(() => new Map(thread.map(({ id }, index) => [id, index + 1])), [thread]);
  /** What stood there when the pointer came: it must not move on under the hand. */
  const [held, setHeld] = useState<readonly StoryRow[]>();
  const latest = useMemo(() => {
    const startOfDay = (atMs: number) => startOfDayMs(atMs, zone);
    if (data.isHeat) return daysOf(data.alerts, view, show, startOfDay);
    const told = new Set([...numbers.keys(), ...echoes]);
    return storyOf({
      events: data.events,
      alerts: data.alerts,
      told,
      chosen: alert?.id,
      view,
      show,
      startOfDayMs: startOfDay,
    });
  }, [data.isHeat, data.events, data.alerts, numbers, echoes, alert?.id, view, show, zone]);
  const rows = held ?? latest;
  const toldEvents = rows.filter(({ kind }) => kind === "event").length;
  const alertsInView = data.alerts.filter((one) =>
    overlaps(view, Date.parse(one.first_event_at), Date.parse(one.last_event_at)),
  ).length;

  const step = (by: 1 | -1) => {
    const next = neighbourRow(rows, marked, by);
    if (next === undefined) return;
    onMark(next.id);
    onSeek(next.id);
  };
  useKeys("list", {
    next: () => step(1),
    previous: () => step(-1),
    open: () => {
      const row = rows.find(({ id }) => id === marked);
      if (row?.kind === "alert") onAlert(row.id);
    },
  });

  return (
    <aside aria-label="What happened" className="flex min-h-0 flex-col border-line bg-app max-lg:border-t lg:border-l">
      <div className="flex min-h-14 shrink-0 items-center gap-2 border-b border-line py-2 pr-3 pl-4">
        <div className="min-w-0">
          <h2 className="text-base font-semibold">What happened</h2>
          {/* While the clock is followed, the count changes all the time. */}
          <p role={isFollowing ? undefined : "status"} className="text-2xs whitespace-nowrap text-ink3">
            {data.isPending
              ? data.error === null
                ? "Loading…"
                : "Not loaded"
              : data.isHeat
                ? `${count(data.eventCount, "event")}: zoom in to read`
                : `${exact(toldEvents)} of ${count(data.eventCount, "event")}, ${count(alertsInView, "alert")}`}
          </p>
        </div>
        <div className="ml-auto">
          <Segments
            label="What to list"
            value={show}
            options={[
              { value: "worth", label: "Worth reading" },
              { value: "everything", label: "Everything" },
            ]}
            onChange={onShow}
          />
        </div>
      </div>
      {data.isPending && data.error === null ? (
        <div className="space-y-3 p-4">
          {["a", "b", "c", "d", "e", "f"].map((key) => (
            <Skeleton key={key} className="h-5" />
          ))}
        </div>
      ) : data.isPending ? (
        <Empty title="What happened could not be loaded">The picture says why.</Empty>
      ) : rows.length === 0 ? (
        <Nothing {...props} />
      ) : (
        <StoryList
          rows={rows}
          numbers={numbers}
          echoes={echoes}
          severity={alert?.severity ?? "critical"}
          chosen={alert?.id}
          isDays={data.isHeat}
          marked={marked}
          sought={sought}
          onMark={onMark}
          onAlert={onAlert}
          onHold={(isHeld) => setHeld(isHeld && isFollowing ? rows : undefined)}
        />
      )}
    </aside>
  );
});

function Nothing({ data, show, hasFilter, onShow, onZoomOut }: StoryProps) {
  if (show === "worth" && data.eventCount > 0) {
    return (
      <Empty title="Nothing worth reading here">
        <p>{count(data.eventCount, "event")} of everyday life.</p>
        <Button className="mt-3" onClick={() => onShow("everything")}>
          Show everything
        </Button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing happened here">
      <p>
        {hasFilter ? "No event of this time names what you chose." : "No event and no alert is known of this time."}
      </p>
      <Button className="mt-3" icon="minus" onClick={onZoomOut}>
        Zoom out
      </Button>
    </Empty>
  );
}

/** The next event or alert of the list; the first or last where none is marked. */
function neighbourRow(rows: readonly StoryRow[], marked: string | undefined, by: 1 | -1): StoryRow | undefined {
  const readable = rows.filter(({ kind }) => kind === "event" || kind === "alert");
  const place = readable.findIndex(({ id }) => id === marked);
  return place === -1 ? readable.at(by === 1 ? 0 : -1) : readable[place + by];
}
