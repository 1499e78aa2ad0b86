import { useQueryClient } from "@tanstack/react-query";
import {
  arrangeViews,
  changeView,
  deleteView,
  saveView,
  type NewView,
  type StoredView,
  type ViewScreen,
} from "../../data/views.ts";
import { failureWords } from "../../text/failure-words.ts";
import { showToast } from "../ui/toasts.tsx";
import { moved } from "./order.ts";

/** What a view keeps. */
export type ViewContent = Pick<NewView, "search" | "columns" | "density" | "grouping">;

export interface ViewActions {
  readonly create: (draft: { name: string; shared: boolean }, content: ViewContent) => Promise<StoredView>;
  readonly rename: (view: StoredView, draft: { name: string; shared: boolean }) => Promise<void>;
  readonly overwrite: (view: StoredView, content: ViewContent) => void;
  readonly move: (view: StoredView, to: number) => void;
  /** Deletes a view of the reader's own, with a way back. */
  readonly remove: (view: StoredView, onRestored: (id: string) => void) => void;
  /** Deletes a view of somebody else: it would come back as the reader's, so there is no way back. */
  readonly removeForGood: (view: StoredView) => void;
}

export function useViewActions(screen: ViewScreen, stored: readonly StoredView[]): ViewActions {
  const client = useQueryClient();
  const tell = (work: Promise<unknown>, words: string) =>
    void work.then(
      () => showToast(words),
      (error: Error) => showToast(failureWords(error), { isProblem: true }),
    );
  return {
    create: async (draft, content) => {
      const view = await saveView(client, { screen, ...content, ...draft });
      showToast(`Saved “${draft.name}”`);
      return view;
    },
    rename: async (view, draft) => {
      await changeView(client, view.id, draft);
      showToast(`Saved “${draft.name}”`);
    },
    overwrite: (view, content) => {
      const { search, columns, density, grouping } = view;
      changeView(client, view.id, content).then(
        () =>
          showToast(`Saved the changes to “${view.name}”`, {
            undo: () =>
              tell(
                changeView(client, view.id, { search, columns, density, grouping }),
                `“${view.name}” is as it was before`,
              ),
          }),
        (error: Error) => showToast(failureWords(error), { isProblem: true }),
      );
    },
    move: (view, to) => {
      const ids = stored.filter(({ own }) => own).map(({ id }) => id);
      tell(arrangeViews(client, screen, moved(ids, view.id, to)), `“${view.name}” is number ${to + 1} of your views`);
    },
    remove: (view, onRestored) => {
      const { name, search, columns, density, grouping, shared, position } = view;
      const again = { screen, name, search, columns, density, grouping, shared, position };
      const restore = () =>
        tell(
          saveView(client, again).then(({ id }) => onRestored(id)),
          `“${name}” is back`,
        );
      deleteView(client, view.id).then(
        () => showToast(`Deleted “${name}”`, { undo: restore }),
        (error: Error) => showToast(failureWords(error), { isProblem: true }),
      );
    },
    removeForGood: (view) => tell(deleteView(client, view.id), `Deleted “${view.name}”`),
  };
}
