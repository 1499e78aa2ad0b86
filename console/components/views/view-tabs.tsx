import { useEffect, useRef, useState } from "react";
import type { StoredView, ViewScreen } from "../../data/views.ts";
import { exact, short } from "../../text/numbers.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icons.tsx";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import { DeleteViewSheet } from "./delete-view-sheet.tsx";
import { useViewActions, type ViewContent } from "./use-view-actions.ts";
import { ViewSheet, type ViewDraft } from "./view-sheet.tsx";

// The views of a screen: first those that are always there, then the reader's own in their order, then what others share.

export interface BuiltInTab {
  readonly id: string;
  readonly name: string;
}

interface ViewTabsProps {
  readonly screen: ViewScreen;
  /** Never empty: the first is shown when the current view is deleted. */
  readonly builtIn: readonly BuiltInTab[];
  readonly stored: readonly StoredView[];
  readonly currentId: string | undefined;
  /** What is shown differs from the current view. */
  readonly isChanged: boolean;
  /** How much each view shows, by its id. */
  readonly counts?: ReadonlyMap<string, number>;
  /** What a view of this screen keeps, in words. */
  readonly keeps: string;
  readonly content: () => ViewContent;
  readonly onChoose: (id: string, saved?: StoredView) => void;
}

type OpenSheet = { readonly kind: "new" } | { readonly kind: "edit" | "delete"; readonly view: StoredView };

export function ViewTabs(props: ViewTabsProps) {
  const { screen, builtIn, stored, currentId, isChanged, counts, keeps, content, onChoose } = props;
  const actions = useViewActions(screen, stored);
  const [sheet, setSheet] = useState<OpenSheet>();
  const [dragged, setDragged] = useState<StoredView>();
  const [target, setTarget] = useState<string>();
  const tabs = useRef<HTMLElement>(null);
  const own = stored.filter((view) => view.own);
  useEffect(() => {
    // Where there is no room for all tabs, the current one is in sight.
    if (currentId === undefined) return;
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [currentId]);

  const save = async (draft: ViewDraft) => {
    if (sheet?.kind === "edit") await actions.rename(sheet.view, draft);
    else {
      const view = await actions.create(draft, content());
      onChoose(view.id, view);
    }
    setSheet(undefined);
  };
  const overwrite = (view: StoredView) => {
    const kept = content();
    actions.overwrite(view, kept);
    onChoose(view.id, { ...view, ...(kept as Partial<StoredView>) });
  };
  const endDrag = () => {
    setDragged(undefined);
    setTarget(undefined);
  };
  const tab = ({ id, name }: BuiltInTab, saved: StoredView | undefined) => {
    const isCurrent = currentId === id;
    const count = counts?.get(id);
    return (
      <span
        key={id}
        draggable={saved?.own === true}
        onDragStart={(event) => {
          // Firefox drags nothing without data.
          event.dataTransfer.setData("text/plain", name);
          setDragged(saved);
        }}
        onDragOver={(event) => {
          if (dragged === undefined || saved?.own !== true) return;
          event.preventDefault();
          setTarget(id);
        }}
        onDrop={(event) => {
          event.preventDefault();
          const place = own.findIndex((view) => view.id === id);
          if (dragged !== undefined && dragged.id !== id && place >= 0) actions.move(dragged, place);
          endDrag();
        }}
        onDragEnd={endDrag}
        className={`flex h-8 shrink-0 items-center rounded-md text-sm font-medium whitespace-nowrap ${isCurrent ? "bg-accent-soft text-accent" : "text-ink2 hover:bg-hover"} ${dragged !== undefined && dragged.id !== id && target === id ? "outline-2 -outline-offset-2 outline-accent" : ""} ${dragged?.id === id ? "opacity-50" : ""}`}
      >
        <button
          type="button"
          aria-current={isCurrent ? "page" : undefined}
          onClick={() => onChoose(id, saved)}
          className="flex h-full items-center gap-1.5 px-2.5"
        >
          {saved?.shared === true && <Icon name="share-2" size={12} label="shared" />}
          <span className="max-w-56 truncate">{name}</span>
          {isCurrent && isChanged && (
            <span title="What is shown differs from the view" className="text-accent">
              *<span className="sr-only"> changed</span>
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
                label={`Change the view ${name}`}
                size={13}
                className="size-6! text-accent"
              />
            }
            items={itemsOf(saved)}
          />
        )}
      </span>
    );
  };
  const itemsOf = (view: StoredView): (MenuItem | "line")[] => {
    const place = own.findIndex(({ id }) => id === view.id);
    const refusal = view.editable ? undefined : `It belongs to ${view.owner}`;
    const moves: readonly (MenuItem | "line")[] = [
      "line",
      {
        label: "Move left",
        icon: "chevron-left",
        disabledBecause: place === 0 ? "It is the first of yours" : undefined,
        onChoose: () => actions.move(view, place - 1),
      },
      {
        label: "Move right",
        icon: "chevron-right",
        disabledBecause: place === own.length - 1 ? "It is the last of yours" : undefined,
        onChoose: () => actions.move(view, place + 1),
      },
    ];
    return [
      {
        label: "Save changes to this view",
        icon: "bookmark",
        disabledBecause: refusal ?? (isChanged ? undefined : "Nothing has changed"),
        onChoose: () => overwrite(view),
      },
      {
        label: "Go back to the view as it was saved",
        icon: "undo-2",
        disabledBecause: isChanged ? undefined : "Nothing has changed",
        onChoose: () => onChoose(view.id, view),
      },
      {
        label: "Rename or share",
        icon: "pencil",
        disabledBecause: refusal,
        onChoose: () => setSheet({ kind: "edit", view }),
      },
      ...(view.own ? moves : []),
      "line",
      {
        label: view.own ? "Delete" : "Delete…",
        icon: "trash-2",
        disabledBecause: refusal,
        onChoose: () => {
          if (!view.own) return setSheet({ kind: "delete", view });
          onChoose(builtIn[0]!.id);
          return actions.remove(view, (id) => onChoose(id, { ...view, id }));
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
      {builtIn.map((view) => tab(view, undefined))}
      {stored.map((view) => tab(view, view))}
      <IconButton icon="plus" label="Save these filters as a view" onClick={() => setSheet({ kind: "new" })} />
      {sheet?.kind === "delete" && (
        <DeleteViewSheet
          view={sheet.view}
          onClose={() => setSheet(undefined)}
          onDelete={() => {
            onChoose(builtIn[0]!.id);
            actions.removeForGood(sheet.view);
            setSheet(undefined);
          }}
        />
      )}
      {(sheet?.kind === "new" || sheet?.kind === "edit") && (
        <ViewSheet
          view={sheet.kind === "edit" ? sheet.view : undefined}
          keeps={keeps}
          onSave={save}
          onClose={() => setSheet(undefined)}
        />
      )}
    </nav>
  );
}
