import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { keyLabel, KEYS, useKeys } from "../../app/keys.ts";
import { Button } from "../../components/ui/button.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import { ScreenViews } from "../../components/views/screen-views.tsx";
import { eventCountsQuery, eventTotalQuery, usesWordIndex, type EventQuestion } from "../../data/events.ts";
import { mayPrefetch } from "../../data/limits.ts";
import { count, exact } from "../../text/numbers.ts";
import {
  NEWEST_FIRST,
  readColumns,
  readFilter,
  readSort,
  toggled,
  writeColumns,
  writeFilter,
  writeSort,
  type EventFilter,
} from "./address.ts";
import { ColumnMenu } from "./column-menu.tsx";
import { Nothing } from "./empty.tsx";
import type { FieldActions } from "./event-detail.tsx";
import { EventList } from "./event-list.tsx";
import { ExportSheet } from "./export-sheet.tsx";
import { Facets } from "./facets.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { Histogram } from "./histogram.tsx";
import { histogramStep } from "./histogram-step.ts";
import { EventKeyHints } from "./key-hints.tsx";
import { LinkedEvent } from "./linked-event.tsx";
import { Notes } from "./notes.tsx";
import { TailBar } from "./tail-bar.tsx";
import { useEventRows } from "./use-event-rows.ts";
import { useHeldRange } from "./use-held-range.ts";
import { useTail } from "./use-tail.ts";

const BARS_MAX = 180;
const DAY_MS = 86_400_000;
const KEPT_IN_VIEWS = ["search", "source", "type", "severity", "filter", "columns", "sort"];
/** How often to count what is new. */
const COUNT_NEW_MS = 30_000;

export function Events() {
  const search = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const [sheet, setSheet] = useState<"export" | "facets">();
  const [cursor, setCursor] = useState<string>();
  const [opened, setOpened] = useState<ReadonlySet<string>>(
    () => new Set(search.event === undefined ? [] : [search.event]),
  );
  const [isReading, setReading] = useState(false);
  const [named, setNamed] = useState(search.event);
  const [linked, setLinked] = useState(search.event);
  // A link, or the browser's way back, may lead from one event to another.
  if (search.event !== named) {
    setNamed(search.event);
    if (search.event !== undefined && !opened.has(search.event)) {
      setLinked(search.event);
      setOpened(new Set([...opened, search.event]));
    }
  }

  const { search: words, source, type, severity, filter: text } = search;
  const filter = useMemo(
    () => readFilter({ search: words, source, type, severity, filter: text }),
    [words, source, type, severity, text],
  );
  const sort = useMemo(() => readSort(search.sort), [search.sort]);
  const columns = useMemo(() => readColumns(search.columns), [search.columns]);
  const { fromMs, toMs, isRelative, refresh } = useHeldRange(JSON.stringify([filter, sort]));
  const question = useMemo<EventQuestion>(() => ({ ...filter, fromMs, toMs }), [filter, fromMs, toMs]);
  const range = useMemo(() => ({ fromMs, toMs }), [fromMs, toMs]);

  const canTail = isRelative && sort.field === NEWEST_FIRST.field && sort.isDescending;
  const isLive = search.live !== undefined && canTail;
  const isPaused = isReading || cursor !== undefined;
  const live = useTail({ isOn: isLive, isPaused, filter, onOpen: refresh });
  const list = useEventRows(question, sort, live.tail.shown);
  const step = histogramStep(toMs - fromMs, BARS_MAX);
  const counts = useQuery(eventCountsQuery(question, step.interval));
  const fresh = useQuery({
    ...eventTotalQuery({ ...question, fromMs: toMs, toMs: toMs + DAY_MS }),
    enabled: isRelative && !isLive,
    staleTime: COUNT_NEW_MS,
    refetchInterval: () => (mayPrefetch() ? COUNT_NEW_MS : false),
  });

  const go = useCallback(
    (more: Record<string, string | undefined>, isReplacing = false) =>
      void navigate({ replace: isReplacing, search: (previous) => ({ ...previous, ...more }) }),
    [navigate],
  );
  const setFilter = useCallback(
    (next: EventFilter) => {
      setCursor(undefined);
      go({ ...writeFilter(next), event: undefined });
    },
    [go],
  );
  const onFilter = useCallback(
    (field: string, value: string, isOut: boolean) => setFilter(toggled(filter, field, value, isOut)),
    [filter, setFilter],
  );
  const onColumn = useCallback(
    (field: string) => {
      const next = columns.includes(field) ? columns.filter((column) => column !== field) : [...columns, field];
      go({ columns: writeColumns(next) }, true);
    },
    [columns, go],
  );
  const actions = useMemo<FieldActions>(() => ({ columns, onFilter, onColumn }), [columns, onFilter, onColumn]);
  const onToggle = useCallback(
    (id: string) => {
      const next = new Set(opened);
      const isClosing = next.delete(id);
      if (!isClosing) next.add(id);
      setOpened(next);
      setCursor(id);
      go({ event: isClosing ? undefined : id }, true);
    },
    [opened, go],
  );
  const onSort = (field: string) => {
    const isSame = sort.field === field;
    if (field === "timestamp") return go({ sort: writeSort({ field, isDescending: !isSame || !sort.isDescending }) });
    // Descending, ascending, and back to the newest first.
    if (isSame && !sort.isDescending) return go({ sort: undefined });
    return go({ sort: writeSort({ field, isDescending: !isSame }) });
  };
  const reload = () => {
    setCursor(undefined);
    setReading(false);
    live.clear();
    refresh();
  };
  const toggleTail = () => {
    if (!canTail && !isLive) {
      showToast("The live tail needs a time that ends now, and the newest first.");
      return;
    }
    // What the tail has shown stays in the list.
    if (isLive) refresh();
    go({ live: isLive ? undefined : "1" }, true);
  };
  const freshCount = fresh.data ?? 0;
  const letIn = isLive ? live.letIn : reload;
  useKeys("events", { tail: toggleTail });
  useKeys("everywhere", { letIn });

  const total = list.total ?? counts.data?.total;
  const isEmpty = !list.isPending && list.rows.length === 0 && !isLive;
  return (
    <main className="flex h-full min-h-0 flex-col">
      <div className="flex items-center gap-x-3 gap-y-2 px-4 pt-3 max-md:flex-wrap">
        <h1 className="text-lg leading-8 font-semibold tracking-tight">Events</h1>
        <ScreenViews
          screen="events"
          search={search}
          names={KEPT_IN_VIEWS}
          whole="All events"
          keeps="the filters, the columns and the order"
        />
        <div className="ml-auto flex shrink-0 gap-2">
          <Button className="lg:hidden" icon="list-filter" onClick={() => setSheet("facets")}>
            Values
          </Button>
          <ColumnMenu range={range} columns={columns} onColumn={onColumn} />
          <Button
            icon={isLive ? "pause" : "radio"}
            hint={keyLabel(KEYS.events.tail.keys[0])}
            aria-pressed={isLive}
            disabled={!canTail}
            title={canTail ? undefined : "Needs a time that ends now, and the newest first"}
            className={isLive ? "!border-accent !text-accent" : ""}
            onClick={toggleTail}
          >
            {isLive ? "Stop the tail" : "Live tail"}
          </Button>
          <Button icon="download" className="max-sm:hidden" onClick={() => setSheet("export")}>
            Export
          </Button>
        </div>
      </div>
      <div className="px-4 pt-2">
        <FilterBar filter={filter} range={range} onChange={setFilter} />
      </div>
      <Notes
        filter={filter}
        counts={counts.data}
        hasWordIndex={usesWordIndex(question, sort)}
        onReplace={({ field, suggestion }) =>
          setFilter({
            ...filter,
            conditions: filter.conditions.map((one) => (one.field === field ? { ...one, field: suggestion! } : one)),
          })
        }
      />
      <div className="min-h-[92px] px-4 pt-3 pb-1">
        <Histogram
          counts={counts.data}
          error={counts.error}
          isDimmed={counts.isPlaceholderData}
          fromMs={fromMs}
          toMs={toMs}
          step={step}
          onRetry={() => void counts.refetch()}
        />
      </div>
      <div className="grid min-h-0 flex-1 grid-cols-[236px_minmax(0,1fr)] border-t border-line max-lg:grid-cols-1">
        <aside
          aria-label="Values"
          tabIndex={0}
          className="min-h-0 overflow-y-auto border-r border-line px-2 py-2 max-lg:hidden"
        >
          <h2 className="sr-only">Values</h2>
          <Facets question={question} filter={filter} onFilter={onFilter} />
        </aside>
        <section aria-label="List" className="flex min-h-0 min-w-0 flex-col">
          {isLive ? (
            <TailBar live={live} isPaused={isPaused} onShow={live.letIn} onReload={reload} />
          ) : (
            <div className="flex h-9 items-center gap-2 border-b border-line px-4 text-xs text-ink2">
              <p>{total !== undefined ? count(total, "event") : list.error === null ? "Counting…" : ""}</p>
              <div role="status" className="ml-auto">
                {freshCount > 0 && (
                  <Button look="quiet" icon="arrow-up" hint="." className="!h-7 !text-accent" onClick={reload}>
                    {exact(freshCount)} new
                  </Button>
                )}
              </div>
            </div>
          )}
          {linked !== undefined && !list.isPending && (
            <LinkedEvent
              key={linked}
              id={linked}
              rows={list.rows}
              isDimmed={list.isDimmed}
              actions={actions}
              onClose={() => setLinked(undefined)}
            />
          )}
          {list.error !== null && list.isPending ? (
            <div className="flex-1 overflow-y-auto">
              <Failure error={list.error} onRetry={list.retry} />
            </div>
          ) : list.isPending ? (
            <Skeleton className="m-4 flex-1" />
          ) : isEmpty ? (
            <div className="flex-1 overflow-y-auto">
              <Nothing question={question} filter={filter} onFilter={setFilter} />
            </div>
          ) : (
            <EventList
              rows={list.rows}
              tailCount={list.tailCount}
              isAtStart={list.isAtStart}
              isAtEnd={list.isAtEnd}
              total={total ?? 0}
              isDimmed={list.isDimmed}
              hasDay={toMs - fromMs > DAY_MS}
              sort={sort}
              cursor={cursor}
              opened={opened}
              actions={actions}
              question={question}
              named={search.event}
              linked={linked}
              onSort={onSort}
              onCursor={setCursor}
              onToggle={onToggle}
              onReading={setReading}
              onNearEnd={list.fetchNext}
              onNearStart={list.fetchPrevious}
              onJump={list.jumpTo}
            />
          )}
          <EventKeyHints />
        </section>
      </div>
      {sheet === "export" && <ExportSheet question={question} columns={columns} onClose={() => setSheet(undefined)} />}
      <Sheet open={sheet === "facets"} onClose={() => setSheet(undefined)} title="Values">
        <Facets question={question} filter={filter} onFilter={onFilter} />
      </Sheet>
    </main>
  );
}
