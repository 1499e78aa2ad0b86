import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useKeys } from "../../../app/keys.ts";
import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Menu } from "../../../components/ui/menu.tsx";
import { Empty, Failure, Skeleton } from "../../../components/ui/states.tsx";
import { listQuery, type WatchListDetail } from "../../../data/lists.ts";
import { useMay } from "../../../data/session.ts";
import { DeleteListSheet } from "./delete-list-sheet.tsx";
import { EntryTable } from "./entry-table.tsx";
import { ImportEntriesSheet } from "./import-entries-sheet.tsx";
import { NewEntry } from "./new-entry.tsx";

interface ListPanelProps {
  readonly name: string;
  /** What entries are searched for. */
  readonly search: string | undefined;
  readonly onClose: () => void;
}

export function ListPanel({ name, search, onClose }: ListPanelProps) {
  const list = useQuery(listQuery(name));
  if (list.data === undefined) {
    return list.error === null ? (
      <Skeleton className="m-4 h-64" />
    ) : (
      <Failure error={list.error} onRetry={() => void list.refetch()} />
    );
  }
  return <Body list={list.data} search={search} onClose={onClose} />;
}

interface BodyProps {
  readonly list: WatchListDetail;
  readonly search: string | undefined;
  readonly onClose: () => void;
}

function Body({ list, search, onClose }: BodyProps) {
  const mayWrite = useMay("rules:write");
  const [open, setOpen] = useState<"import" | "delete">();
  const lacks = mayWrite ? undefined : "Your key lacks the scope rules:write.";
  return (
    <div className="flex h-full min-h-0 flex-col">
      <header className="border-b border-line px-5 py-3">
        <div className="flex items-center gap-2">
          <IconButton icon="chevron-left" label="Back to the lists" className="md:hidden" onClick={onClose} />
          <h2 className="mono min-w-0 truncate text-[15px] font-semibold">{list.name}</h2>
          <div className="ml-auto flex items-center gap-1">
            {!list.read_only && (
              <>
                <Button icon="upload" disabled={!mayWrite} title={lacks} onClick={() => setOpen("import")}>
                  Paste many
                </Button>
                <Menu
                  trigger={<IconButton icon="ellipsis" label="What to do with the list" />}
                  items={[
                    {
                      label: "Delete the list",
                      icon: "trash-2",
                      disabledBecause: lacks,
                      onChoose: () => setOpen("delete"),
                    },
                  ]}
                />
              </>
            )}
          </div>
        </div>
        {list.description !== "" && <p className="text-sm break-words text-ink2">{list.description}</p>}
        <p className="mt-1 text-xs text-ink3">
          {list.used_by.length === 0 ? (
            <>
              No rule uses it yet. A rule does with the condition{" "}
              <code className="mono text-ink2">enrichment.lists is {list.name}</code>.
            </>
          ) : (
            <>
              Used by{" "}
              {list.used_by.map((rule, index) => (
                <span key={rule}>
                  {index > 0 && ", "}
                  <Link to="/rules" search={{ rule }} className="mono text-ink2 underline hover:text-accent">
                    {rule}
                  </Link>
                </span>
              ))}
            </>
          )}
        </p>
      </header>
      {list.read_only ? (
        <Empty title="This list comes from the service's settings">
          It is a file or an address on the web, which the service reads again by itself. Its entries cannot be shown or
          changed here.
        </Empty>
      ) : (
        <>
          <div className="space-y-3 border-b border-line px-5 py-3">
            <NewEntry list={list} disabledBecause={lacks} />
            <EntrySearch search={search} />
          </div>
          <EntryTable list={list} search={search} />
        </>
      )}
      {open === "import" && <ImportEntriesSheet list={list} onClose={() => setOpen(undefined)} />}
      {open === "delete" && <DeleteListSheet list={list} onClose={() => setOpen(undefined)} onDeleted={onClose} />}
    </div>
  );
}

const TYPING_MS = 250;

function EntrySearch({ search }: { search: string | undefined }) {
  const navigate = useNavigate({ from: "/rules" });
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(search ?? "");
  useKeys("everywhere", { filter: () => input.current?.focus() });
  useEffect(() => {
    const wanted = text.trim() === "" ? undefined : text.trim();
    if (wanted === search) return;
    const timer = setTimeout(
      () => void navigate({ replace: true, search: (previous) => ({ ...previous, entry: wanted }) }),
      TYPING_MS,
    );
    return () => clearTimeout(timer);
  }, [text, search, navigate]);
  return (
    <div className="flex h-8 items-center gap-2 rounded-md border border-line bg-panel px-2 focus-within:border-accent">
      <Icon name="search" size={14} className="text-ink3" />
      <input
        ref={input}
        aria-label="Find entries by value or note"
        placeholder="Find an entry…"
        maxLength={500}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") input.current?.blur();
        }}
        className="min-w-0 flex-1 bg-transparent text-sm outline-none"
      />
      <kbd aria-hidden className="max-md:hidden">
        /
      </kbd>
    </div>
  );
}
