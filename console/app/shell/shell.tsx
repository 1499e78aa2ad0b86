import { Outlet, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { setSiteZone } from "../../components/time/zone.ts";
import { preloadSheet } from "../../components/ui/sheet.tsx";
import { Toasts, undoLatest } from "../../components/ui/toasts.tsx";
import { siteQuery } from "../../data/site.ts";
import { useKeys } from "../keys.ts";
import { LimitBanner } from "./limit-banner.tsx";
import { keepRange, Rail } from "./rail.tsx";
import { TopBar } from "./top-bar.tsx";
import { lazyPart } from "../../components/ui/lazy-part.ts";

const loadPalette = () => import("../palette/palette.tsx");
const loadKeySheet = () => import("./key-sheet.tsx");
const Palette = lazyPart(loadPalette);
const KeySheet = lazyPart(loadKeySheet);

const IDLE_MS = 1000;

/** What opens over a page is there when it is asked for: the first letters typed must not go to the page. */
function loadCovers(): void {
  void loadPalette();
  void loadKeySheet();
  preloadSheet();
}

/** What stands around every screen. */
export function Shell() {
  const navigate = useNavigate();
  const { data: site } = useQuery(siteQuery);
  useEffect(() => {
    if (site !== undefined) setSiteZone(site.timezone);
  }, [site]);
  useEffect(() => {
    const timer = setTimeout(loadCovers, IDLE_MS);
    return () => clearTimeout(timer);
  }, []);
  const [cover, setCover] = useState<"palette" | "keys">();
  const go = (to: string) => () => void navigate({ to, search: keepRange as never });
  useKeys("everywhere", {
    palette: () => setCover("palette"),
    sheet: () => setCover("keys"),
    home: go("/home"),
    alerts: go("/alerts"),
    axis: go("/axis"),
    events: go("/events"),
    flows: go("/flows"),
    rules: go("/rules"),
    sources: go("/sources"),
  });
  useKeys("alert", { undo: undoLatest });
  return (
    <div className="grid h-full grid-cols-[68px_minmax(0,1fr)] grid-rows-[48px_minmax(0,1fr)] max-md:grid-cols-1 max-md:grid-rows-[48px_minmax(0,1fr)_58px] print:block">
      <div data-below-sheets className="contents">
        <a
          href="#screen"
          className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:bg-accent focus:px-3 focus:py-2 focus:text-accent-ink"
        >
          Skip to the screen
        </a>
        <Rail />
        <TopBar onSearch={() => setCover("palette")} onKeys={() => setCover("keys")} />
      </div>
      <div id="screen" className="flex min-h-0 min-w-0 flex-col overflow-hidden print:overflow-visible">
        <LimitBanner />
        <div data-below-sheets className="min-h-0 flex-1">
          <Outlet />
        </div>
      </div>
      <Toasts />
      <Suspense fallback={null}>
        {cover === "palette" && <Palette onClose={() => setCover(undefined)} />}
        {cover === "keys" && <KeySheet onClose={() => setCover(undefined)} />}
      </Suspense>
    </div>
  );
}
