import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useNow, useRange } from "../../components/time/use-range.ts";
import { Button } from "../../components/ui/button.tsx";
import { TextField } from "../../components/ui/fields.tsx";
import { Empty } from "../../components/ui/states.tsx";
import { isAddress, setMyAddress, useMyAddress } from "../../data/me.ts";
import { setPreference, usePreferences } from "../../data/preferences.ts";
import { siteQuery } from "../../data/site.ts";
import { viewsQuery } from "../../data/views.ts";
import { readList, readStoredView, toFilters, writeFilters, type Density, type FilterTexts } from "./address.ts";
import { FilterBar } from "./filters/filter-bar.tsx";
import { Queue } from "./queue.tsx";
import { Strip } from "./strip.tsx";
import { Toolbar } from "./toolbar.tsx";
import { AlertViews } from "./views/alert-views.tsx";

type Search = Readonly<Record<string, string | undefined>>;

/** Alerts to work on: views, filters, the queue, and the alert that is chosen. */
export function AlertsScreen() {
  const search = useSearch({ from: "/alerts" }) as Search;
  const navigate = useNavigate({ from: "/alerts" });
  const views = useQuery(viewsQuery("alerts"));
  const stored = useMemo(() => views.data ?? [], [views.data]);
  const state = useMemo(() => readList(search, stored.map(readStoredView)), [search, stored]);
  const me = useMyAddress();
  const site = useQuery(siteQuery);
  const sources = site.data?.sources ?? [];
  const { density: ownDensity } = usePreferences();
  const density = state.density ?? ownDensity;
  const [generation, setGeneration] = useState(0);
  const nowMs = useNow();
  const range = useRange();
  // A relative range moves with the clock; the list does not, until it is asked for again.
  const frozen = useMemo(
    () => ({ fromMs: range.fromMs, toMs: range.isRelative ? undefined : range.toMs }),
    // oxlint-disable-next-line react-hooks/exhaustive-deps
    [search["range"], search["from"], search["to"], generation, state.filters],
  );
  const shownRange = { fromMs: frozen.fromMs, toMs: frozen.toMs ?? nowMs };

  const isAwaited = search["view"] !== undefined && state.view === undefined && views.isPending;
  const filters = useMemo(
    () => (isAwaited ? undefined : toFilters(state.filters, frozen, me)),
    [isAwaited, state.filters, frozen, me],
  );
  const change = (changes: Record<string, string | undefined>) =>
    void navigate({ search: (previous) => ({ ...previous, alert: undefined, ...changes }) });
  const changeFilters = (changes: FilterTexts) => change(writeFilters(state, changes));
  // A view that has a height of its own is not changed by what the reader prefers elsewhere.
  const setDensity = (next: Density) =>
    state.density === undefined
      ? setPreference("density", next)
      : change({ density: next === state.view?.density ? undefined : next });
  const choose = (id: string) =>
    void navigate({ search: ({ range: length, from, to }) => ({ view: id, range: length, from, to }) });

  const head = (
    <>
      <div className="flex items-center gap-3 px-4 pt-3">
        <h1 className="text-lg font-semibold tracking-tight">Alerts</h1>
        <AlertViews
          state={state}
          stored={stored}
          density={density}
          filtersOf={(view) => toFilters(view.filters, frozen, me)}
          onChoose={choose}
        />
        <Toolbar
          grouping={state.grouping}
          sort={state.sort}
          density={density}
          filters={filters}
          onGroup={(group) => change({ group })}
          onSort={(sort) => change({ sort })}
          onDensity={setDensity}
        />
      </div>
      <FilterBar filters={state.filters} sources={sources} onChange={changeFilters} />
      {filters === undefined ? (
        <div className="h-16" />
      ) : (
        <Strip filters={filters} range={shownRange} search={search} />
      )}
    </>
  );
  if (filters === undefined) {
    return (
      <main className="flex h-full min-w-0 flex-col">
        {head}
        {!isAwaited && <WhoAreYou />}
      </main>
    );
  }
  if (search["view"] !== undefined && state.view === undefined && !views.isError) {
    return (
      <main className="flex h-full min-w-0 flex-col">
        {head}
        <Empty title="This view is no longer there">
          <Button onClick={() => choose("todo")}>Go to the alerts to do</Button>
        </Empty>
      </main>
    );
  }
  return (
    <Queue
      head={head}
      search={search}
      state={state}
      filters={filters}
      range={shownRange}
      density={density}
      generation={generation}
      me={me}
      nowMs={nowMs}
      onAskAgain={() => setGeneration(generation + 1)}
      onFilters={changeFilters}
    />
  );
}

/** The reader's own alerts, of a reader whose address nobody knows. */
function WhoAreYou() {
  const [text, setText] = useState("");
  return (
    <Empty title="Which alerts are yours?">
      <p>Alerts are assigned to e-mail addresses, and your key is not named after one.</p>
      <form
        className="mt-3 flex items-end gap-2 text-left"
        onSubmit={(event) => {
          event.preventDefault();
          if (isAddress(text.trim())) setMyAddress(text.trim());
        }}
      >
        <TextField
          label="Your e-mail address"
          type="email"
          autoComplete="email"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <Button type="submit" look="primary" disabled={!isAddress(text.trim())}>
          Show mine
        </Button>
      </form>
    </Empty>
  );
}
