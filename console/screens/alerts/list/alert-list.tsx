import { useVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, type ReactNode, type RefObject } from "react";
import { Skeleton } from "../../../components/ui/states.tsx";
import type { Alert } from "../../../data/client.ts";
import type { AlertFilters } from "../../../data/alerts.ts";
import { matches } from "../matches.ts";
import { isSelected, type Selectable, type Selection } from "../selection.ts";
import { AlertRow, GroupRow } from "./alert-row.tsx";
import type { Layout, Place } from "./layout.ts";
import type { AlertList as List, Row } from "./use-alert-list.ts";
import { useAnchor } from "./use-anchor.ts";

export const ROW_HEIGHT = { comfortable: 56, compact: 36 } as const;
const OVERSCAN = 8;

export interface ListProps {
  readonly list: List;
  readonly filters: AlertFilters;
  readonly cursor: Place | undefined;
  readonly selection: Selection;
  readonly tinted: ReadonlySet<string>;
  readonly density: keyof typeof ROW_HEIGHT;
  readonly range: { readonly fromMs: number; readonly toMs: number };
  readonly stepMs: number;
  readonly nowMs: number;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly onVisible: (start: number, end: number) => void;
  readonly onOpen: (index: number) => void;
  readonly onToggle: (rule: string) => void;
  readonly onSelect: (index: number, isRange: boolean) => void;
  readonly footer: ReactNode;
}

export function selectableOf(row: Row): Selectable | undefined {
  if (row.kind === "alert") return { kind: "alert", id: row.alert.id, rule: row.alert.rule_name };
  return row.kind === "group" ? { kind: "group", id: row.group.rule, rule: row.group.rule } : undefined;
}

export const indexOf = (layout: Layout, place: Place): number => {
  switch (place.kind) {
    case "head":
      return layout.headOf(place.rule);
    case "fresh":
      return layout.freshAt(place.id);
    case "paged": {
      const start = layout.startOf(place.rule, place.page);
      // The group was folded: its head stands for it.
      return start < 0 ? (place.rule === null ? -1 : layout.headOf(place.rule)) : start + place.row;
    }
    default:
      return place satisfies never;
  }
};

const rowId = (index: number) => `alert-row-${index}`;

/** The rows in sight of a list of any length. */
export function AlertList(props: ListProps) {
  const { list, cursor, scroller, onVisible } = props;
  const { layout } = list;
  const height = ROW_HEIGHT[props.density];
  const virtual = useVirtualizer({
    count: layout.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
  });
  useLayoutEffect(() => virtual.measure(), [virtual, height]);
  const items = virtual.getVirtualItems();
  const [start, end] = [items[0]?.index ?? 0, items.at(-1)?.index ?? Math.min(20, layout.count - 1)];
  useLayoutEffect(() => onVisible(start, end), [onVisible, start, end]);
  const room = useAnchor(layout, cursor, height, scroller, virtual.scrollOffset ?? 0);

  const cursorIndex = cursor === undefined ? -1 : indexOf(layout, cursor);
  return (
    <div
      ref={scroller}
      role="grid"
      tabIndex={0}
      aria-label="Alerts"
      aria-rowcount={layout.count}
      aria-multiselectable
      aria-busy={list.isPending}
      aria-activedescendant={cursorIndex >= start && cursorIndex <= end ? rowId(cursorIndex) : undefined}
      className="@container min-h-0 flex-1 overflow-y-auto overscroll-contain [overflow-anchor:none] border-t border-line outline-offset-[-2px]"
    >
      {list.isPending && layout.count === 0 && <WaitingRows height={height} />}
      <div style={{ height: virtual.getTotalSize() }} className="relative">
        {items.map(({ index, start: top }) => (
          // Keys of the list act on the cursor's row; the mouse acts on any.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <div
            key={index}
            id={rowId(index)}
            role="row"
            aria-rowindex={index + 1}
            aria-selected={index === cursorIndex}
            onClick={() => props.onOpen(index)}
            style={{ transform: `translateY(${top}px)`, height }}
            className="absolute inset-x-0 top-0"
          >
            <RowOf {...props} index={index} isCursor={index === cursorIndex} />
          </div>
        ))}
      </div>
      {props.footer}
      <div ref={room} aria-hidden />
    </div>
  );
}

function RowOf(props: ListProps & { readonly index: number; readonly isCursor: boolean }) {
  const { list, index, filters, selection, tinted } = props;
  const row = list.rowAt(index);
  if (row === undefined) return null;
  if (row.kind === "waiting") return <WaitingRow isCompact={props.density === "compact"} />;
  if (row.kind === "gone") {
    return (
      <div
        role="gridcell"
        className="flex h-full items-center border-b border-line px-4 text-xs text-ink3 line-through"
      >
        No longer in this view
      </div>
    );
  }
  const look = {
    isCursor: props.isCursor,
    isSelected: isSelected(selection, selectableOf(row)!),
    isCompact: props.density === "compact",
    range: props.range,
    nowMs: props.nowMs,
    onSelect: (isRange: boolean) => props.onSelect(index, isRange),
  };
  if (row.kind === "group") {
    return (
      <GroupRow
        {...look}
        group={row.group}
        filters={filters}
        isOpen={row.isOpen}
        stepMs={props.stepMs}
        isTinted={false}
        isStruck={row.group.count === 0}
        onToggle={() => props.onToggle(row.group.rule)}
      />
    );
  }
  return (
    <AlertRow
      {...look}
      alert={row.alert}
      isInGroup={row.isInGroup}
      isTinted={tinted.has(row.alert.id)}
      isStruck={isStruck(row.alert, filters)}
    />
  );
}

/** An alert that no longer matches stays until the view is left. Which events it has is not known here, nor how words match. */
function isStruck(alert: Alert, filters: AlertFilters): boolean {
  const { event_id: _, search: __, ...known } = filters;
  return !matches(alert, known);
}

/** How many groups there will be is not known yet. */
const WAITING_ROWS = 12;

function WaitingRows({ height }: { height: number }) {
  return Array.from({ length: WAITING_ROWS }, (_, index) => (
    <div key={index} role="row" style={{ height }}>
      <WaitingRow isCompact={height === ROW_HEIGHT.compact} />
    </div>
  ));
}

function WaitingRow({ isCompact }: { isCompact: boolean }) {
  return (
    <div role="gridcell" className="flex h-full items-center gap-3 border-b border-line px-4">
      <Skeleton className="size-4" />
      <Skeleton className="size-4" />
      <div className="min-w-0 flex-1 space-y-1.5">
        <Skeleton className="h-3.5 w-3/5" />
        {!isCompact && <Skeleton className="h-2.5 w-2/5" />}
      </div>
      <Skeleton className="size-6 rounded-full" />
    </div>
  );
}
