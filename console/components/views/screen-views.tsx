import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { viewsQuery, type StoredView, type ViewScreen } from "../../data/views.ts";
import { showToast } from "../ui/toasts.tsx";
import { isSameSearch, pickSearch, readViewSearch, writeViewSearch, type SearchTexts } from "./view-search.ts";
import { ViewTabs } from "./view-tabs.tsx";

interface ScreenViewsProps {
  readonly screen: ViewScreen;
  readonly search: SearchTexts;
  /** The parameters that a view keeps. A constant: its identity matters. */
  readonly names: readonly string[];
  /** The name of the screen without any filter. */
  readonly whole: string;
  readonly keeps: string;
}

const WHOLE = "";
const NONE: readonly StoredView[] = [];

/**
 * The views of a screen whose address says everything that it shows: choosing a view writes what it keeps into the address,
 * beside the view's id. A link may name the view alone.
 */
export function ScreenViews({ screen, search, names, whole, keeps }: ScreenViewsProps) {
  const navigate = useNavigate();
  const views = useQuery(viewsQuery(screen));
  const stored = views.data ?? NONE;
  const id = search["view"];
  const view = stored.find((each) => each.id === id);
  const shown = pickSearch(search, names);
  const isBare = Object.keys(shown).length === 0;
  /** The view whose content has been written into the address. */
  const written = useRef<string>(undefined);

  const show = (texts: SearchTexts, isReplacing = false) =>
    void navigate({
      to: ".",
      replace: isReplacing,
      search: (({ range, from, to }: SearchTexts) => ({ range, from, to, ...texts })) as never,
    });
  const choose = (chosen: string, saved?: StoredView) => {
    written.current = chosen;
    show(saved === undefined ? {} : { view: chosen, ...readViewSearch(saved, names) });
  };
  useEffect(() => {
    if (id === undefined) return;
    if (view === undefined) {
      // A view that was saved a moment ago may not be in the list yet.
      if (!views.isSuccess || views.isFetching || written.current === id) return;
      showToast("This view is no longer there");
      show(shown, true);
      return;
    }
    const kept = readViewSearch(view, names);
    const isLinkAlone = isBare && Object.keys(kept).length > 0 && written.current !== id;
    // Whoever takes the last filter away has left the view.
    const isLeft = isBare && Object.keys(kept).length > 0 && written.current === id;
    written.current = id;
    if (isLinkAlone) show({ view: id, ...kept }, true);
    else if (isLeft) show({}, true);
  });

  return (
    <div className="min-w-0 max-md:order-last max-md:basis-full">
      <ViewTabs
        screen={screen}
        builtIn={[{ id: WHOLE, name: whole }]}
        stored={stored}
        currentId={view?.id ?? (isBare ? WHOLE : undefined)}
        isChanged={view !== undefined && !isSameSearch(shown, readViewSearch(view, names), names)}
        keeps={keeps}
        content={() => writeViewSearch(search, names)}
        onChoose={choose}
      />
    </div>
  );
}
