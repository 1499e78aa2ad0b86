import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useKeys } from "../../app/keys.ts";
import { Axis } from "../../components/axis/axis.tsx";
import { echoesOf } from "../../components/axis/echoes.ts";
import { threadOf } from "../../components/axis/thread.ts";
import { useAxisData } from "../../components/axis/use-axis-data.ts";
import { bandOf, lengthOf, panned, viewAround, zoomed, type View } from "../../components/axis/view.ts";
import { useNow } from "../../components/time/use-range.ts";
import { EmptyScreen, Failure, Skeleton } from "../../components/ui/states.tsx";
import { ScreenViews } from "../../components/views/screen-views.tsx";
import { alertDetailQuery } from "../../data/alerts.ts";
import { axisAlertsQuery } from "../../data/axis.ts";
import { useMay } from "../../data/session.ts";
import { useAlertStream } from "../../data/stream.ts";
import { readEntities, writeEntities } from "./address.ts";
import { Legend } from "./legend.tsx";
import { Overview } from "./overview.tsx";
import { overviewRange, type OverviewRange } from "./overview.ts";
import { neighbourAlert, type Show } from "./story.ts";
import { Story } from "./story-panel.tsx";
import { Toolbar } from "./toolbar.tsx";
import { useAxisView, useSettled } from "./use-axis-view.ts";

const REST_MS = 150;
const WEEK_MS = 7 * 86_400_000;
const HOUR_MS = 3_600_000;
/** While following: often where seconds can be told apart. */
const REFRESH_MS = { near: 5000, far: 60_000 };
const ZOOM_OUT = 1.6;
const KEPT_IN_VIEWS = ["entity", "show"];
const NO_EVENTS: readonly never[] = [];

export function AxisScreen() {
  if (!useMay("events:read")) {
    return (
      <EmptyScreen heading="One time axis" title="Your key may not see this">
        <p>The time axis needs the scope events:read.</p>
      </EmptyScreen>
    );
  }
  return <ReadableAxis />;
}

function ReadableAxis() {
  const search = useSearch({ from: "/axis" });
  const { view, isFollowing, setView, go, follow } = useAxisView();
  const settled = useSettled(view, REST_MS);
  const mayReadAlerts = useMay("alerts:read");
  const nowMs = useNow();
  const [marked, setMarked] = useState<string>();
  const [sought, setSought] = useState<{ id: string }>();
  const [isFilterOpen, setFilterOpen] = useState(false);
  const entities = useMemo(() => readEntities(search.entity), [search.entity]);
  const show: Show = search.show === "everything" ? "everything" : "worth";

  const refreshMs = isFollowing && (lengthOf(settled) < 6 * HOUR_MS ? REFRESH_MS.near : REFRESH_MS.far);
  const detail = useQuery({
    ...alertDetailQuery(search.alert ?? ""),
    enabled: search.alert !== undefined && mayReadAlerts,
    placeholderData: keepPreviousData,
  });
  const isUntimed = search.range === undefined && search.from === undefined;
  // The alert will say which time to ask for.
  const isWaiting = isUntimed && search.alert !== undefined && mayReadAlerts && !detail.isError;
  const data = useAxisData(settled, { entities, isWaiting, refreshMs });
  const alert = search.alert === undefined ? undefined : detail.data;
  useEffect(() => {
    if (alert !== undefined && isUntimed) go({}, viewAround(alert), true);
  }, [alert, isUntimed, go]);

  const overview = useOverviewRange(view, nowMs);
  const overviewHour = { fromMs: hour(overview.fromMs), toMs: hour(overview.toMs), entities };
  const bad = useQuery({ ...axisAlertsQuery(overviewHour, "critical,high"), enabled: mayReadAlerts });
  const refreshBad = useThrottled(bad.refetch, REFRESH_MS.near);
  useAlertStream(refreshBad, refreshBad);

  const thread = useMemo(() => (alert === undefined ? NO_EVENTS : threadOf(alert)), [alert]);
  const echoes = useMemo(() => echoesOf(thread, data.events), [thread, data.events]);
  const band = useMemo(() => alert && bandOf(alert), [alert]);
  const badAlerts = bad.data?.alerts ?? NO_EVENTS;

  const chooseAlert = useCallback(
    (id: string) => go({ alert: id === search.alert ? undefined : id }),
    [go, search.alert],
  );
  const seek = useCallback((id: string) => setSought({ id }), []);
  const setShow = useCallback((next: Show) => go({ show: next === "everything" ? next : undefined }), [go]);
  const zoomOut = useCallback(
    () => setView(zoomed(settled, ZOOM_OUT, (settled.fromMs + settled.toMs) / 2)),
    [setView, settled],
  );
  const toNeighbour = (step: 1 | -1) => {
    const known = [...new Map([...badAlerts, ...data.alerts].map((one) => [one.id, one])).values()];
    const next = neighbourAlert(known, search.alert, (view.fromMs + view.toMs) / 2, step);
    if (next !== undefined) go({ alert: next.id }, viewAround(next));
  };
  // What follows the clock still ends now after zooming.
  const zoom = (factor: number) => {
    if (isFollowing) follow(lengthOf(zoomed(view, factor, view.toMs)));
    else setView(zoomed(view, factor, (view.fromMs + view.toMs) / 2));
  };
  const actions = {
    earlier: () => setView(panned(view, -0.25)),
    later: () => setView(panned(view, 0.25)),
    zoomIn: () => zoom(1 / ZOOM_OUT),
    zoomOut: () => zoom(ZOOM_OUT),
    fit: () => (alert === undefined ? follow(WEEK_MS) : setView(viewAround(alert))),
    follow: () => (isFollowing ? setView(view) : follow(lengthOf(view))),
  };
  useKeys("axis", { ...actions, nextAlert: () => toNeighbour(1), previousAlert: () => toNeighbour(-1) });
  useKeys("everywhere", { filter: () => setFilterOpen(true) });

  return (
    <div className="grid h-full grid-cols-[minmax(0,1fr)_372px] max-lg:grid-cols-1 max-lg:grid-rows-[auto_minmax(0,1fr)]">
      <main className="flex min-h-0 min-w-0 flex-col max-lg:max-h-[58vh]">
        <Toolbar
          views={
            <ScreenViews
              screen="axis"
              search={search}
              names={KEPT_IN_VIEWS}
              whole="Whole site"
              keeps="the places and people, and how much is told"
            />
          }
          view={view}
          isFollowing={isFollowing}
          alert={alert}
          isAlertAwaited={search.alert !== undefined && detail.isLoading}
          entities={entities}
          isFilterOpen={isFilterOpen}
          onFilterOpen={setFilterOpen}
          onRemoveAlert={() => go({ alert: undefined })}
          onEntities={(next) => go({ entity: writeEntities(next) })}
          actions={actions}
        />
        {detail.isError && search.alert !== undefined && <Failure error={detail.error} />}
        <div className="relative min-h-0 flex-1 overflow-x-auto overflow-y-hidden">
          <div className={`flex h-full flex-col ${data.error === null ? "min-w-[720px]" : ""}`}>
            <Overview range={overview} view={view} alerts={badAlerts} onView={setView} />
            <div
              // Lanes may be more than fit; keys must reach them.
              tabIndex={0}
              role="region"
              aria-label="Lanes"
              className={`min-h-0 flex-1 overflow-y-auto bg-panel transition-opacity ${data.isStale ? "opacity-70" : ""}`}
            >
              {data.isPending && data.error === null ? (
                <Skeleton className="m-4 h-96" />
              ) : data.error !== null ? (
                <Failure error={data.error} onRetry={data.retry} />
              ) : (
                <Axis
                  view={view}
                  onView={setView}
                  events={data.events}
                  alerts={data.alerts}
                  thread={thread}
                  threadSeverity={alert?.severity ?? "critical"}
                  echoes={echoes}
                  band={band}
                  chosen={alert?.id}
                  heat={data.heat}
                  traffic={data.traffic}
                  untilMs={data.untilMs}
                  marked={marked}
                  onMark={setMarked}
                  onEvent={seek}
                  onAlert={chooseAlert}
                />
              )}
            </div>
          </div>
        </div>
        <Legend />
      </main>
      <Story
        data={data}
        view={settled}
        isFollowing={isFollowing}
        show={show}
        thread={thread}
        echoes={echoes}
        alert={alert}
        marked={marked}
        sought={sought}
        onShow={setShow}
        onMark={setMarked}
        onSeek={seek}
        onAlert={chooseAlert}
        onZoomOut={zoomOut}
        hasFilter={entities.length > 0}
      />
    </div>
  );
}

/** The same object while the view moves within it: what is drawn of it stays. */
function useOverviewRange(view: View, nowMs: number): OverviewRange {
  const { fromMs, toMs, days, stepMs } = overviewRange(view, nowMs);
  return useMemo(() => ({ fromMs, toMs, days, stepMs }), [fromMs, toMs, days, stepMs]);
}

/** At most once in that time, however many alerts are raised at once. */
function useThrottled(act: () => unknown, everyMs: number): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      act();
    }, everyMs);
  }, [act, everyMs]);
}

const hour = (atMs: number) => Math.ceil(atMs / HOUR_MS) * HOUR_MS;
