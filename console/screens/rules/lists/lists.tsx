import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useKeys } from "../../../app/keys.ts";
import { Button } from "../../../components/ui/button.tsx";
import { Empty, Failure, Skeleton } from "../../../components/ui/states.tsx";
import { listsQuery, type WatchList } from "../../../data/lists.ts";
import { useMay } from "../../../data/session.ts";
import { count } from "../../../text/numbers.ts";
import { ListPanel } from "./list-panel.tsx";
import { NewListSheet } from "./new-list-sheet.tsx";

/** The watch lists, and the entries of the one that is open. */
export default function Lists() {
  const search = useSearch({ from: "/rules" }) as { readonly list?: string; readonly entry?: string };
  const navigate = useNavigate({ from: "/rules" });
  const mayWrite = useMay("rules:write");
  const lists = useQuery(listsQuery);
  const [isNew, setNew] = useState(false);
  const open = (name: string | undefined) =>
    void navigate({ replace: true, search: (previous) => ({ ...previous, list: name, entry: undefined }) });
  const all = lists.data ?? [];
  const index = all.findIndex(({ name }) => name === search.list);
  const move = (by: 1 | -1) => {
    const next = all[index < 0 ? 0 : Math.min(Math.max(index + by, 0), all.length - 1)];
    if (next !== undefined) open(next.name);
  };
  useKeys("list", { next: () => move(1), previous: () => move(-1) });
  useKeys("everywhere", search.list === undefined ? {} : { back: () => open(undefined) });
  const newButton = (
    <Button
      look="primary"
      icon="plus"
      disabled={!mayWrite}
      title={mayWrite ? undefined : "Your key lacks the scope rules:write."}
      onClick={() => setNew(true)}
    >
      New list
    </Button>
  );
  return (
    <div className="grid h-full min-h-0 grid-cols-[300px_minmax(0,1fr)] border-t border-line max-md:grid-cols-1">
      <div
        className={`min-h-0 overflow-y-auto border-r border-line p-3 max-md:border-r-0 ${search.list === undefined ? "" : "max-md:hidden"}`}
      >
        <div className="mb-3 flex items-center justify-between gap-2 px-1">
          <p className="text-xs text-ink3">Rules look things up here</p>
          {newButton}
        </div>
        {lists.error !== null && lists.data === undefined ? (
          <Failure error={lists.error} onRetry={() => void lists.refetch()} />
        ) : lists.data === undefined ? (
          <Skeleton className="h-64" />
        ) : all.length === 0 ? (
          <Empty title="No watch lists yet">
            A list of addresses or domains. Events that name one of them can raise an alert.
          </Empty>
        ) : (
          <ul aria-label="Watch lists" className="space-y-0.5">
            {all.map((list) => (
              <li key={list.name}>
                <ListButton list={list} isOpen={list.name === search.list} onOpen={() => open(list.name)} />
              </li>
            ))}
          </ul>
        )}
      </div>
      <div className={`min-h-0 ${search.list === undefined ? "max-md:hidden" : ""}`}>
        {search.list === undefined ? (
          <Empty title={all.length === 0 ? "Watch what you know" : "Choose a list"}>
            {all.length === 0
              ? "Addresses that attacked before, domains that nobody should ask for, devices of visitors."
              : "Its entries are shown here."}
          </Empty>
        ) : (
          <ListPanel key={search.list} name={search.list} search={search.entry} onClose={() => open(undefined)} />
        )}
      </div>
      {isNew && (
        <NewListSheet
          onClose={() => setNew(false)}
          onMade={(name) => {
            setNew(false);
            open(name);
          }}
        />
      )}
    </div>
  );
}

function ListButton({ list, isOpen, onOpen }: { list: WatchList; isOpen: boolean; onOpen: () => void }) {
  return (
    <button
      type="button"
      aria-current={isOpen ? "true" : undefined}
      onClick={onOpen}
      className={`block w-full rounded-md px-3 py-2 text-left ${isOpen ? "bg-accent-soft" : "hover:bg-hover"}`}
    >
      <span className={`mono block truncate text-sm ${isOpen ? "text-accent" : "text-ink"}`}>{list.name}</span>
      <span className="block truncate text-xs text-ink3">
        {count(list.entries, "entry", "entries")}
        {list.read_only && ", from a file"}
        {list.description !== "" && `, ${list.description}`}
      </span>
    </button>
  );
}
