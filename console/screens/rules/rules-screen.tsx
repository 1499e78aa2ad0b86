import { useNavigate, useSearch } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { Button } from "../../components/ui/button.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import { useMay } from "../../data/session.ts";
import { readEdit } from "./rule-input.ts";
import { RulesPart } from "./rules-part.tsx";
import { lazyPart } from "../../components/ui/lazy-part.ts";

const Editor = lazyPart(() => import("./editor/editor.tsx"));
const ImportSheet = lazyPart(() => import("./import-sheet.tsx"));
const Lists = lazyPart(() => import("./lists/lists.tsx"));

const TABS = [
  { id: undefined, name: "Rules" },
  { id: "lists", name: "Watch lists" },
] as const;

/** What is looked for, what it found, and the lists that it looks things up in. */
export function RulesScreen() {
  const search = useSearch({ from: "/rules" });
  const navigate = useNavigate({ from: "/rules" });
  const mayWrite = useMay("rules:write");
  const [isImporting, setImporting] = useState(false);
  const lacks = mayWrite ? undefined : "Your key lacks the scope rules:write.";
  const target = readEdit(search.edit);
  if (target !== undefined) {
    return (
      <Suspense fallback={<Skeleton className="m-4 h-96" />}>
        <Editor
          key={search.edit}
          target={target}
          onClose={(saved?: string) =>
            void navigate({
              search: (previous) => ({ ...previous, edit: undefined, rule: saved ?? previous["rule"] }),
            })
          }
        />
      </Suspense>
    );
  }
  const tab = search.tab === "lists" ? "lists" : undefined;
  return (
    <main className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-3 px-4 pt-3 pb-3">
        <h1 className="text-lg font-semibold tracking-tight">Rules</h1>
        <nav aria-label="Rules and lists" className="flex gap-1">
          {TABS.map(({ id, name }) => (
            <button
              key={name}
              type="button"
              aria-current={id === tab ? "page" : undefined}
              onClick={() => void navigate({ search: (previous) => ({ ...previous, tab: id }) })}
              className={`rounded-md px-3 py-1.5 text-sm font-medium ${id === tab ? "bg-accent-soft text-accent" : "text-ink2 hover:bg-hover"}`}
            >
              {name}
            </button>
          ))}
        </nav>
        {tab === undefined && (
          <div className="ml-auto flex items-center gap-2">
            <Button icon="upload" disabled={!mayWrite} title={lacks} onClick={() => setImporting(true)}>
              Import
            </Button>
            <Button
              look="primary"
              icon="plus"
              hint="N"
              disabled={!mayWrite}
              title={lacks}
              onClick={() => void navigate({ search: (previous) => ({ ...previous, edit: "new" }) })}
            >
              New rule
            </Button>
          </div>
        )}
      </div>
      <div className="min-h-0 flex-1">
        {tab === undefined ? (
          <RulesPart />
        ) : (
          <Suspense fallback={<Skeleton className="m-4 h-96" />}>
            <Lists />
          </Suspense>
        )}
      </div>
      {isImporting && (
        <Suspense fallback={null}>
          <ImportSheet onClose={() => setImporting(false)} />
        </Suspense>
      )}
    </main>
  );
}
