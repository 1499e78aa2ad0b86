import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { ViewTabs } from "../../../components/views/view-tabs.tsx";
import { alertTalliesQuery } from "../../../data/alert-tallies.ts";
import { tallied } from "../../../data/alert-tally.ts";
import { alertCountQuery, type AlertFilters } from "../../../data/alerts.ts";
import type { StoredView } from "../../../data/views.ts";
import { BUILT_IN_VIEWS, readStoredView, viewSearch, type Density, type ListState, type View } from "../address.ts";

interface AlertViewsProps {
  readonly state: ListState;
  readonly stored: readonly StoredView[];
  readonly filtersOf: (view: View) => AlertFilters | undefined;
  readonly density: Density;
  readonly onChoose: (id: string) => void;
}

/** More views than this are not counted: each is a question of its own. */
const COUNTED_MAX = 12;
const SAVED_STALE_MS = 30_000;

export function AlertViews({ state, stored, filtersOf, density, onChoose }: AlertViewsProps) {
  const views: readonly View[] = [...BUILT_IN_VIEWS, ...stored.map(readStoredView)];
  const counts = useCounts(views.map(filtersOf));
  return (
    <ViewTabs
      screen="alerts"
      builtIn={BUILT_IN_VIEWS}
      stored={stored}
      currentId={state.view?.id}
      isChanged={state.isChanged}
      counts={
        new Map(views.flatMap(({ id }, index) => (counts[index] === undefined ? [] : [[id, counts[index]] as const])))
      }
      keeps="the filters, the grouping, the order and the height of the rows"
      content={() => ({ search: viewSearch(state), grouping: state.grouping, density })}
      onChoose={onChoose}
    />
  );
}

/** One request counts the built-in views; each saved view is a question of its own. */
function useCounts(all: readonly (AlertFilters | undefined)[]): (number | undefined)[] {
  const { from, to, time } = all.find((filters) => filters !== undefined) ?? {};
  const range = {
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(time !== undefined && { time }),
  };
  const tallies = useQuery({ ...alertTalliesQuery(range), placeholderData: keepPreviousData });
  const known = all.map((filters) =>
    filters === undefined || filters.time !== time ? undefined : tallied(tallies.data ?? [], filters),
  );
  const others = useQueries({
    queries: all.slice(0, COUNTED_MAX).map((filters, i) => ({
      ...alertCountQuery(filters ?? {}),
      staleTime: SAVED_STALE_MS,
      enabled: filters !== undefined && known[i] === undefined,
    })),
  });
  return all.map((_, i) => (known[i] === undefined ? others[i]?.data : tallies.data && known[i]));
}
