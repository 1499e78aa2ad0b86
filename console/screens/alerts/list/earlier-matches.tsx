import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Button } from "../../../components/ui/button.tsx";
import { alertCountQuery, type AlertFilters } from "../../../data/alerts.ts";
import { exact } from "../../../text/numbers.ts";

interface EarlierMatchesProps {
  readonly filters: AlertFilters;
  readonly total: number | undefined;
}

const LONG_AGO = "3650d";

/** The range hides alerts that still wait: the end of the list says how many. */
export function EarlierMatches({ filters, total }: EarlierMatchesProps) {
  const navigate = useNavigate({ from: "/alerts" });
  const { from: _, to: __, ...timeless } = filters;
  const all = useQuery({ ...alertCountQuery(timeless), enabled: total !== undefined });
  const hidden = all.data === undefined || total === undefined ? 0 : all.data - total;
  if (hidden <= 0) return null;
  return (
    <p className="flex items-center justify-center gap-2 px-4 py-3 text-xs text-ink3">
      {exact(hidden)} more {hidden === 1 ? "matches" : "match"} at other times.
      <Button
        look="quiet"
        onClick={() =>
          void navigate({ search: (previous) => ({ ...previous, from: undefined, to: undefined, range: LONG_AGO }) })
        }
      >
        Show all
      </Button>
    </p>
  );
}
