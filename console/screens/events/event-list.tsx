import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useRef } from "react";
import { useKeys } from "../../app/keys.ts";
import { IconButton } from "../../components/ui/button.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import type { Event } from "../../data/client.ts";
import type { ListEdge } from "../../data/events.ts";
import type { EventSort } from "./address.ts";
import { EventDetail, type FieldActions } from "./event-detail.tsx";
import { EventRow, gridColumns, ROW_HEIGHT } from "./event-row.tsx";
import { fieldName } from "./filter-text.ts";

interface EventListProps {
  readonly rows: readonly Event[];
  readonly tailCount: number;
  /** The first row is the first of all: what is new comes above it. */
  readonly isAtStart: boolean;
  /** The last row is the last of all. */
  readonly isAtEnd: boolean;
  readonly total: number;
  readonly isDimmed: boolean;
  readonly hasDay: boolean;
  readonly sort: EventSort;
  readonly cursor: string | undefined;
  readonly opened: ReadonlySet<string>;
  readonly actions: FieldActions;
  /** Changes when another question was asked: the list starts at the top. */
  readonly question: unknown;
  /** The event of the address: the list starts there, if it is among the first rows. */
  readonly named: string | undefined;
  /** The event of the link that was followed last. */
  readonly linked: string | undefined;
  readonly onSort: (field: string) => void;
  readonly onCursor: (id: string | undefined) => void;
  readonly onToggle: (id: string) => void;
  /** The pointer is over the rows, or they are scrolled. */
  readonly onReading: (isReading: boolean) => void;
  readonly onNearEnd: () => void;
  readonly onNearStart: () => void;
  /** Brings the rows at an edge of the whole list; false if it cannot. */
  readonly onJump: (edge: ListEdge) => boolean;
}

const NEAR_ROWS = 40;
const TOP_PIXELS = 8;

/** Rows of sentences. Only those in view exist; when pages come and go above them, they stay where they are. */
export function EventList(props: EventListProps) {
  const { rows, tailCount, isAtStart, isAtEnd, total, isDimmed, hasDay, sort, cursor, opened, actions, question } =
    props;
  const { named, linked } = props;
  const { onSort, onCursor, onToggle, onReading, onNearEnd, onNearStart, onJump } = props;
  const { columns, onFilter, onColumn } = actions;
  const scroller = useRef<HTMLDivElement>(null);
  const anchor = useRef<{ id: string; offset: number }>(undefined);
  /** The edge whose rows are on their way. */
  const awaited = useRef<ListEdge>(undefined);
  /** The row that the list starts at as soon as the rows of its question are there. */
  const sought = useRef<string>(undefined);
  /** The row that gets the focus as soon as it is drawn. */
  const focused = useRef<string>(undefined);
  const hover = useRef({ isOver: false, isScrolled: false });
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT + 1,
    getItemKey: useCallback((index: number) => rows[index]!.id, [rows]),
    overscan: 12,
  });
  const items = list.getVirtualItems();
  const firstIndex = items[0]?.index ?? 0;
  const lastIndex = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (lastIndex >= rows.length - NEAR_ROWS) onNearEnd();
    else if (firstIndex < NEAR_ROWS) onNearStart();
  }, [firstIndex, lastIndex, rows.length, onNearEnd, onNearStart]);

  /** The browser tells that it has scrolled only after the next frame, which would have other rows. */
  const drawThere = () => scroller.current!.dispatchEvent(new Event("scroll"));
  const tellReading = () => onReading(hover.current.isOver || hover.current.isScrolled);
  const noteAnchor = () => {
    const top = scroller.current!.scrollTop;
    const isScrolled = top > TOP_PIXELS || !isAtStart;
    // Not from the rows that are drawn: after a jump they are those of before.
    const first = isScrolled ? list.getVirtualItemForOffset(top) : undefined;
    anchor.current = first && { id: String(first.key), offset: first.start - top };
    if (isScrolled === hover.current.isScrolled) return;
    hover.current.isScrolled = isScrolled;
    tellReading();
  };
  useLayoutEffect(() => {
    const edge = awaited.current;
    if (edge !== undefined && (edge === "start" ? isAtStart : isAtEnd)) {
      awaited.current = undefined;
      anchor.current = undefined;
      putAt(edge === "start" ? 0 : rows.length - 1);
      drawThere();
      return;
    }
    if (anchor.current === undefined) return;
    const { id, offset } = anchor.current;
    const index = rows.findIndex((row) => row.id === id);
    const start = index < 0 ? undefined : list.measurementsCache[index]?.start;
    if (start === undefined) return;
    scroller.current!.scrollTop = start - offset;
    drawThere();
    // The list itself is the same throughout.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [rows]);
  useEffect(() => {
    anchor.current = undefined;
    awaited.current = undefined;
    scroller.current!.scrollTop = 0;
    sought.current = named;
    // Only another question or link moves the list.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [question, linked]);
  useEffect(() => {
    if (isDimmed || sought.current === undefined) return;
    const index = rows.findIndex(({ id }) => id === sought.current);
    sought.current = undefined;
    if (index >= 0) list.scrollToIndex(index, { align: "center" });
  }, [rows, isDimmed, question, linked, list]);
  useEffect(() => {
    if (focused.current === undefined) return;
    const button = scroller.current!.querySelector<HTMLElement>(`[data-row="${focused.current}"]`);
    if (button === null) return;
    focused.current = undefined;
    button.focus({ preventScroll: true });
  });

  const putAt = (index: number) => {
    const row = rows[index];
    if (row === undefined) return;
    onCursor(row.id);
    focused.current = row.id;
    list.scrollToIndex(index, { align: "auto" });
  };
  const move = (step: 1 | -1) => {
    const at = rows.findIndex((row) => row.id === cursor);
    putAt(at < 0 ? firstVisible() : Math.min(rows.length - 1, Math.max(0, at + step)));
  };
  const moveToEdge = (edge: ListEdge) => {
    const isThere = edge === "start" ? isAtStart : isAtEnd;
    // Before the jump, so that rows from the cache find it.
    awaited.current = isThere ? undefined : edge;
    if (isThere || !onJump(edge)) putAt(edge === "start" ? 0 : rows.length - 1);
  };
  const firstVisible = () => {
    const top = scroller.current!.scrollTop;
    return list.getVirtualItems().find(({ start }) => start >= top)?.index ?? 0;
  };
  const filterBy = (isOut: boolean) => {
    const pointed =
      scroller.current?.querySelector<HTMLElement>("[data-value]:hover") ??
      document.activeElement?.closest<HTMLElement>("[data-value]");
    const { field, value } = pointed?.dataset ?? {};
    const row = rows.find(({ id }) => id === cursor);
    if (field !== undefined && value !== undefined) onFilter(field, value, isOut);
    else if (row !== undefined) onFilter("type", row.type, isOut);
  };
  const toggle = () => cursor !== undefined && onToggle(cursor);
  useKeys("list", {
    next: () => move(1),
    previous: () => move(-1),
    first: () => moveToEdge("start"),
    last: () => moveToEdge("end"),
    open: toggle,
  });
  useKeys("events", { expand: toggle, filterFor: () => filterBy(false), filterOut: () => filterBy(true) });
  useKeys("everywhere", { back: () => onCursor(undefined) }, { enabled: cursor !== undefined });

  return (
    <div
      ref={scroller}
      role="table"
      aria-label="Events"
      aria-rowcount={total + 1}
      aria-busy={isDimmed}
      tabIndex={0}
      onScroll={noteAnchor}
      onPointerEnter={({ pointerType }) => {
        if (pointerType !== "mouse") return;
        hover.current.isOver = true;
        tellReading();
      }}
      onPointerLeave={() => {
        hover.current.isOver = false;
        tellReading();
      }}
      className={`min-h-0 flex-1 overflow-auto [overflow-anchor:none] ${isDimmed ? "opacity-60" : ""}`}
    >
      <div className="min-w-fit max-sm:min-w-0">
        <div role="rowgroup" className="sticky top-0 z-10 max-sm:sr-only">
          <div
            role="row"
            style={{ gridTemplateColumns: gridColumns(columns, hasDay) }}
            className="grid h-7 items-center gap-2 border-b border-line bg-app px-3 text-2xs font-medium text-ink3"
          >
            <span role="columnheader" className="sr-only">
              Open
            </span>
            <SortHeader label="Time" field="timestamp" sort={sort} onSort={onSort} className="col-start-2" />
            <span role="columnheader" className="sr-only">
              Severity
            </span>
            <span role="columnheader" className="sr-only">
              Part of the site
            </span>
            <span role="columnheader" className="col-start-5">
              What happened
            </span>
            {columns.map((field) => (
              <SortHeader key={field} label={fieldName(field)} field={field} sort={sort} onSort={onSort}>
                <IconButton
                  icon="x"
                  size={11}
                  label={`Remove the column ${fieldName(field)}`}
                  className="!size-6"
                  onClick={() => onColumn(field)}
                />
              </SortHeader>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const event = rows[item.index]!;
            return (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                role="none"
                className="absolute inset-x-0 border-b border-line"
                style={{ top: item.start }}
              >
                <EventRow
                  event={event}
                  columns={columns}
                  hasDay={hasDay}
                  isCursor={event.id === cursor}
                  isOpen={opened.has(event.id)}
                  isNew={item.index < tailCount}
                  onToggle={onToggle}
                />
                {opened.has(event.id) && (
                  <div role="row">
                    <div role="cell">
                      <EventDetail event={event} actions={actions} />
                    </div>
                  </div>
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface SortHeaderProps {
  readonly label: string;
  readonly field: string;
  readonly sort: EventSort;
  readonly onSort: (field: string) => void;
  readonly className?: string;
  readonly children?: React.ReactNode;
}

function SortHeader({ label, field, sort, onSort, className = "", children }: SortHeaderProps) {
  const isSorted = sort.field === field;
  return (
    <span
      role="columnheader"
      aria-sort={isSorted ? (sort.isDescending ? "descending" : "ascending") : undefined}
      className={`flex min-w-0 items-center ${className}`}
    >
      <button
        type="button"
        title={`Sort by ${label}`}
        onClick={() => onSort(field)}
        className="flex h-6 min-w-8 items-center gap-1 hover:text-ink"
      >
        <span className="truncate">{label}</span>
        {isSorted && <Icon name={sort.isDescending ? "chevron-down" : "chevron-up"} size={12} />}
      </button>
      {children}
    </span>
  );
}
