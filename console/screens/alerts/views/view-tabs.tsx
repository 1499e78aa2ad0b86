import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type DragEvent } from "react";
import { IconButton } from "../../../components/ui/button.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Menu, type MenuItem } from "../../../components/ui/menu.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import { alertTalliesQuery } from "../../../data/alert-tallies.ts";
import { tallied } from "../../../data/alert-tally.ts";
import { alertCountQuery, type AlertFilters } from "../../../data/alerts.ts";
import { arrangeViews, changeView, deleteView, saveView, type StoredView } from "../../../data/views.ts";
import { exact, short } from "../../../text/numbers.ts";
import { BUILT_IN_VIEWS, readStoredView, viewSearch, type ListState, type View } from "../address.ts";
import { failureWords } from "../work/failure-words.ts";
import { moved } from "./order.ts";
import { ViewSheet, type ViewDraft } from "./view-sheet.tsx";

interface ViewTabsProps {
  readonly state: ListState;
  readonly stored: readonly StoredView[];
  readonly filtersOf: (view: View) => AlertFilters | undefined;
  readonly density: "comfortable" | "compact";
  readonly onChoose: (id: string) => void;
}

/** More views than this are not counted: each is a question of its own. */
const COUNTED_MAX = 12;
const SAVED_STALE_MS = 30_000;

type Sheet = { readonly kind: "new" } | { readonly kind: "edit"; readonly view: StoredView };

export function ViewTabs({ state, stored, filtersOf, density, onChoose }: ViewTabsProps) {
  const client = useQueryClient();
  const [sheet, setSheet] = useState<Sheet>();
  const [dragged, setDragged] = useState<string>();
  const views: readonly View[] = [...BUILT_IN_VIEWS, ...stored.map(readStoredView)];
  const counts = useCounts(views.map(filtersOf));
  const own = stored.filter((view) => view.own);
  const tabs = useRef<HTMLElement>(null);
  const currentId = state.view?.id;
  useEffect(() => {
    // Where there is no room for all tabs, the current one is in sight.
    if (currentId === undefined) return;
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [currentId]);
  const tell = (work: Promise<unknown>, words: string) =>
    void work.then(
      () => showToast(words),
      (error: Error) => showToast(failureWords(error), { isProblem: true }),
    );
  const arrange = (ids: string[]) => tell(arrangeViews(client, "alerts", ids), "Views are in their new order");
  const drop = (event: DragEvent, id: string) => {
    event.preventDefault();
    const ids = own.map((view) => view.id);
    if (dragged !== undefined && dragged !== id) arrange(moved(ids, dragged, ids.indexOf(id)));
    setDragged(undefined);
  };
  const save = async (draft: ViewDraft) => {
    if (sheet?.kind === "edit") {
      await changeView(client, sheet.view.id, draft);
      showToast(`Saved “${draft.name}”`);
    } else {
      const { id } = await saveView(client, { screen: "alerts", search: viewSearch(state), density, ...draft });
      onChoose(id);
      showToast(`Saved “${draft.name}”`);
    }
    setSheet(undefined);
  };
  const itemsOf = (view: StoredView): (MenuItem | "line")[] => {
    const place = own.findIndex(({ id }) => id === view.id);
    const refusal = view.editable ? undefined : `It belongs to ${view.owner}`;
    const move = (to: number) =>
      arrange(
        moved(
          own.map(({ id }) => id),
          view.id,
          to,
        ),
      );
    return [
      {
        label: "Save the filters as they are now",
        icon: "bookmark",
        disabledBecause: refusal ?? (state.isChanged ? undefined : "Nothing has changed"),
        onChoose: () => {
          tell(changeView(client, view.id, { search: viewSearch(state), density }), `Saved “${view.name}”`);
          onChoose(view.id);
        },
      },
      {
        label: "Rename or share",
        icon: "pencil",
        disabledBecause: refusal,
        onChoose: () => setSheet({ kind: "edit", view }),
      },
      ...(view.own
        ? ([
            "line",
            {
              label: "Move left",
              icon: "chevron-left",
              disabledBecause: place === 0 ? "It is the first" : undefined,
              onChoose: () => move(place - 1),
            },
            {
              label: "Move right",
              icon: "chevron-right",
              disabledBecause: place === own.length - 1 ? "It is the last" : undefined,
              onChoose: () => move(place + 1),
            },
          ] satisfies (MenuItem | "line")[])
        : []),
      "line",
      {
        label: "Delete",
        icon: "x",
        disabledBecause: refusal,
        onChoose: () => {
          onChoose(BUILT_IN_VIEWS[0]!.id);
          const { screen, name, search, shared, position } = view;
          deleteView(client, view.id).then(
            () =>
              showToast(`Deleted “${name}”`, {
                undo: () =>
                  tell(
                    saveView(client, { screen, name, search, density: view.density, shared, position }),
                    `“${name}” is back`,
                  ),
              }),
            (error: Error) => showToast(failureWords(error), { isProblem: true }),
          );
        },
      },
    ];
  };
  return (
    <nav
      ref={tabs}
      aria-label="Views"
      className="flex min-w-0 items-center gap-1 overflow-x-auto [scrollbar-width:none]"
    >
      {views.map((view, index) => {
        const saved = stored.find(({ id }) => id === view.id);
        const isCurrent = state.view?.id === view.id;
        const count = counts[index];
        return (
          <span
            key={view.id}
            draggable={saved?.own === true}
            onDragStart={() => setDragged(view.id)}
            onDragOver={(event) => dragged !== undefined && saved?.own === true && event.preventDefault()}
            onDrop={(event) => drop(event, view.id)}
            className={`flex h-8 shrink-0 items-center rounded-md text-sm font-medium whitespace-nowrap ${isCurrent ? "bg-accent-soft text-accent" : "text-ink2 hover:bg-hover"}`}
          >
            <button
              type="button"
              aria-current={isCurrent ? "page" : undefined}
              onClick={() => onChoose(view.id)}
              className="flex h-full items-center gap-1.5 px-2.5"
            >
              {saved?.shared === true && <Icon name="share-2" size={12} label="shared" />}
              {view.name}
              {isCurrent && state.isChanged && (
                <span title="The filters differ from those of the view" className="text-accent">
                  *<span className="sr-only"> with other filters</span>
                </span>
              )}
              {count !== undefined && (
                <span title={exact(count)} className={`text-2xs ${isCurrent ? "text-accent" : "text-ink3"}`}>
                  {short(count)}
                </span>
              )}
            </button>
            {isCurrent && saved !== undefined && (
              <Menu
                heading={saved.own ? undefined : `Shared by ${saved.owner}`}
                trigger={
                  <IconButton
                    icon="chevron-down"
                    label={`Change the view ${view.name}`}
                    size={13}
                    className="size-6! text-accent"
                  />
                }
                items={itemsOf(saved)}
              />
            )}
          </span>
        );
      })}
      <IconButton icon="plus" label="Save these filters as a view" onClick={() => setSheet({ kind: "new" })} />
      {sheet !== undefined && (
        <ViewSheet
          view={sheet.kind === "edit" ? sheet.view : undefined}
          onSave={save}
          onClose={() => setSheet(undefined)}
        />
      )}
    </nav>
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
