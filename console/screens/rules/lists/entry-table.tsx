import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import { EntityLink } from "../../../components/entities/entity-link.tsx";
import { dateTime } from "../../../components/time/format.ts";
import { IconButton } from "../../../components/ui/button.tsx";
import { Empty, Failure, Skeleton } from "../../../components/ui/states.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import {
  addEntries,
  listEntriesQuery,
  refreshLists,
  removeEntries,
  type ListEntry,
  type WatchListDetail,
} from "../../../data/lists.ts";
import { useMay } from "../../../data/session.ts";
import { exact } from "../../../text/numbers.ts";

const ROW_HEIGHT = 40;
const COLUMNS =
  "grid-cols-[minmax(0,1.2fr)_minmax(0,1.2fr)_170px_minmax(0,0.8fr)_32px] max-lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_32px]";

export function EntryTable({ list, search }: { list: WatchListDetail; search: string | undefined }) {
  const client = useQueryClient();
  const mayWrite = useMay("rules:write");
  const query = useInfiniteQuery(listEntriesQuery(list.name, search));
  const scroller = useRef<HTMLDivElement>(null);
  const entries = query.data?.pages.flatMap((page) => page.entries) ?? [];
  const total = query.data?.pages[0]?.total ?? 0;
  const restore = useMutation({
    mutationFn: ({ value, note, expires_at }: ListEntry) => addEntries(list.name, [{ value, note, expires_at }]),
    onSuccess: () => void refreshLists(client),
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  const remove = useMutation({
    mutationFn: (entry: ListEntry) => removeEntries(list.name, [entry.value]),
    onSuccess: (_, entry) => {
      showToast(`Removed ${entry.value}.`, { undo: () => restore.mutate(entry) });
      void refreshLists(client);
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  const rows = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
    onChange: (instance) => {
      const last = instance.getVirtualItems().at(-1)?.index ?? 0;
      if (last >= entries.length - 20 && query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
  });
  if (query.error !== null && query.data === undefined) {
    return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  }
  if (query.data === undefined) return <Skeleton className="m-4 h-64" />;
  if (entries.length === 0) {
    return search === undefined ? (
      <Empty title="Nothing is on this list yet">Add an address or a domain above, or paste many at once.</Empty>
    ) : (
      <Empty title="No entry matches">{exact(list.entries)} without the search.</Empty>
    );
  }
  return (
    <div
      ref={scroller}
      role="table"
      aria-label={`Entries of ${list.name}`}
      aria-rowcount={total + 1}
      tabIndex={0}
      className={`min-h-0 flex-1 overflow-y-auto ${query.isPlaceholderData ? "opacity-60" : ""}`}
    >
      <div role="rowgroup" className="sticky top-0 z-10 bg-app">
        <div
          role="row"
          className={`grid ${COLUMNS} items-center gap-4 border-b border-line px-5 py-1.5 text-2xs font-medium text-ink3`}
        >
          <span role="columnheader">{exact(total)} entries</span>
          <span role="columnheader">Note</span>
          <span role="columnheader" className="max-lg:hidden">
            Until
          </span>
          <span role="columnheader" className="max-lg:hidden">
            Added by
          </span>
          <span role="columnheader">
            <span className="sr-only">Remove</span>
          </span>
        </div>
      </div>
      <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((item) => {
          const entry = entries[item.index]!;
          return (
            <div
              key={entry.value}
              role="row"
              aria-rowindex={item.index + 2}
              className={`absolute inset-x-0 grid ${COLUMNS} items-center gap-4 border-b border-line px-5 text-sm`}
              style={{ top: item.start, height: item.size }}
            >
              <span role="cell" className={`mono min-w-0 truncate ${entry.expired ? "text-ink3 line-through" : ""}`}>
                {entry.type === "address" && !entry.expired ? (
                  <EntityLink kind="address" value={entry.value} />
                ) : (
                  <span title={entry.value}>{entry.value}</span>
                )}
              </span>
              <span role="cell" className="min-w-0 truncate text-ink2" title={entry.note ?? undefined}>
                {entry.note}
              </span>
              <span role="cell" className="text-xs text-ink2 max-lg:hidden">
                {entry.expires_at === null
                  ? "for good"
                  : `${entry.expired ? "ended " : ""}${dateTime(entry.expires_at)}`}
              </span>
              <span
                role="cell"
                className="min-w-0 truncate text-xs text-ink3 max-lg:hidden"
                title={dateTime(entry.added_at)}
              >
                {entry.added_by}
              </span>
              <span role="cell">
                <IconButton
                  icon="trash-2"
                  label={mayWrite ? `Remove ${entry.value}` : "Your key lacks the scope rules:write."}
                  disabled={!mayWrite || remove.isPending}
                  onClick={() => remove.mutate(entry)}
                />
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
