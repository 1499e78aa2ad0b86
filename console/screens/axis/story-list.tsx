import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import type { Severity } from "../../data/client.ts";
import { AlertRow, DayRow, EventRow, GapRow } from "./story-rows.tsx";
import type { StoryRow } from "./story.ts";

interface StoryListProps {
  readonly rows: readonly StoryRow[];
  /** The place of each event of the thread, from 1. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly echoes: ReadonlySet<string>;
  readonly severity: Severity;
  readonly chosen: string | undefined;
  readonly isDays: boolean;
  readonly marked: string | undefined;
  /** Scrolled to when it changes. */
  readonly sought: { readonly id: string } | undefined;
  readonly onMark: (id: string | undefined) => void;
  readonly onAlert: (id: string) => void;
  /** The pointer came, or left. */
  readonly onHold: (isHeld: boolean) => void;
}

const ROW_PX: Record<StoryRow["kind"], number> = { event: 28, alert: 66, gap: 24, day: 34 };

/** The picture in words: the same events in the same order, for whoever cannot see it or would rather read. */
export const StoryList = memo(function StoryList(props: StoryListProps) {
  const { rows, numbers, echoes, severity, chosen, isDays, marked, sought, onMark, onAlert, onHold } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => ROW_PX[rows[index]!.kind],
    getItemKey: (index) => rows[index]!.id,
    overscan: 12,
  });
  useEffect(() => {
    const index = sought === undefined ? -1 : rows.findIndex(({ id }) => id === sought.id);
    if (index !== -1) virtual.scrollToIndex(index, { align: "center" });
    // Only when something is sought: rows that come or go must not move the list.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [sought]);
  return (
    <div
      ref={scroller}
      // A list without a link in view can still be scrolled by keys.
      tabIndex={0}
      role="region"
      aria-label="Events in words"
      onMouseEnter={() => onHold(true)}
      onMouseLeave={() => onHold(false)}
      className="min-h-0 flex-1 overflow-y-auto px-4 py-2"
    >
      <ol className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index]!;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
              onMouseEnter={() => onMark(row.kind === "event" ? row.id : undefined)}
              onMouseLeave={() => onMark(undefined)}
              className={`absolute top-0 -right-2 -left-2 rounded-md px-2 ${row.kind === "event" ? "py-1" : ""} ${marked === row.id ? "bg-hover" : ""}`}
              style={{ transform: `translateY(${start}px)` }}
            >
              {row.kind === "event" && (
                <EventRow
                  event={row.event}
                  atMs={row.atMs}
                  number={numbers.get(row.id) ?? 0}
                  isEcho={echoes.has(row.id)}
                  severity={severity}
                />
              )}
              {row.kind === "alert" && (
                <AlertRow
                  alert={row.alert}
                  atMs={row.atMs}
                  isChosen={row.id === chosen}
                  isOfDay={isDays}
                  onChoose={() => onAlert(row.id)}
                />
              )}
              {row.kind === "gap" && <GapRow lengthMs={row.lengthMs} />}
              {row.kind === "day" && <DayRow dayMs={row.dayMs} counts={row.counts} />}
            </li>
          );
        })}
      </ol>
    </div>
  );
});
