import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { keyLabel, KEYS } from "../../../app/keys.ts";
import { SectionHeading } from "../../../components/ui/heading.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import type { AlertDetail } from "../../../data/client.ts";
import { useMay } from "../../../data/session.ts";
import { axisSearch } from "./around-range.ts";

const AlertAxis = lazy(async () => ({ default: (await import("../../../components/axis/alert-axis.tsx")).AlertAxis }));

/** What else happened at that time, small; the axis has all of it. */
export function Around({ alert }: { alert: AlertDetail }) {
  const mayRead = useMay("events:read");
  return (
    <section>
      <SectionHeading
        right={
          <Link
            to="/axis"
            search={axisSearch(alert) as never}
            className="inline-flex items-center gap-1 text-xs font-medium text-accent hover:underline"
          >
            Open on the time axis <Icon name="arrow-right" size={13} />
            <kbd aria-hidden className="max-md:hidden">
              {keyLabel(KEYS.alert.onAxis.keys[0])}
            </kbd>
          </Link>
        }
      >
        What was around it
      </SectionHeading>
      <div className="min-h-[230px] overflow-hidden rounded-lg border border-line bg-app px-2 pt-1 pb-2">
        {mayRead ? (
          <Suspense fallback={null}>
            <AlertAxis alert={alert} />
          </Suspense>
        ) : (
          <p className="p-3 text-sm text-ink3">
            Your key lacks the scope events:read, which the events around it need.
          </p>
        )}
      </div>
    </section>
  );
}
