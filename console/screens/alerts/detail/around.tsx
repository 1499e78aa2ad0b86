import { Link } from "@tanstack/react-router";
import { keyLabel, KEYS } from "../../../app/keys.ts";
import { SectionHeading } from "../../../components/ui/heading.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import type { AlertDetail } from "../../../data/client.ts";
import { axisSearch } from "./around-range.ts";

/** What else happened at that time, small; the axis has all of it. */
export function Around({ alert }: { alert: AlertDetail }) {
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
      <div className="h-[230px] rounded-lg border border-line bg-app" />
    </section>
  );
}
