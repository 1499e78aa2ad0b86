import { IconButton } from "../../components/ui/button.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Menu } from "../../components/ui/menu.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import { exportAlerts, type ExportFormat } from "../../data/alert-export.ts";
import type { AlertFilters } from "../../data/alerts.ts";
import type { Density, Grouping, Sort } from "./address.ts";
import { failureWords } from "../../text/failure-words.ts";

interface ToolbarProps {
  readonly grouping: Grouping;
  readonly sort: Sort;
  readonly density: Density;
  readonly filters: AlertFilters | undefined;
  readonly onGroup: (grouping: Grouping) => void;
  readonly onSort: (sort: Sort) => void;
  readonly onDensity: (density: Density) => void;
}

const SORT_WORDS: Record<Sort, string> = {
  severity: "Worst first",
  created_at: "Newest first",
  last_event_at: "Latest event first",
  event_count: "Most events first",
};
const FORMATS: readonly ExportFormat[] = ["csv", "json", "ndjson"] as const;

function save(url: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}

export function Toolbar({ grouping, sort, density, filters, onGroup, onSort, onDensity }: ToolbarProps) {
  const download = (format: ExportFormat) => {
    showToast("Writing the file…");
    exportAlerts(filters!, format).then(save, (error: Error) => showToast(failureWords(error), { isProblem: true }));
  };
  return (
    <div className="ml-auto flex shrink-0 items-center gap-1.5">
      <Menu
        trigger={
          <button
            type="button"
            className="flex h-8 items-center gap-1.5 rounded-md border border-line px-2.5 text-xs whitespace-nowrap text-ink2 hover:bg-hover max-md:hidden"
          >
            <Icon name="layers" size={13} /> {grouping === "rule" ? "By rule" : SORT_WORDS[sort]}
            <Icon name="chevron-down" size={12} />
          </button>
        }
        items={[
          { label: "Group by rule", isChosen: grouping === "rule", onChoose: () => onGroup("rule") },
          { label: "Do not group", isChosen: grouping === "none", onChoose: () => onGroup("none") },
          "line",
          ...(Object.keys(SORT_WORDS) as Sort[]).map((each) => ({
            label: SORT_WORDS[each],
            isChosen: sort === each,
            onChoose: () => onSort(each),
          })),
        ]}
      />
      <Menu
        trigger={<IconButton icon="sliders-horizontal" label="Display and export" bordered />}
        items={[
          {
            label: "Group by rule",
            isChosen: grouping === "rule",
            onChoose: () => onGroup(grouping === "rule" ? "none" : "rule"),
          },
          {
            label: "Compact rows",
            isChosen: density === "compact",
            onChoose: () => onDensity(density === "compact" ? "comfortable" : "compact"),
          },
          "line",
          ...FORMATS.map((format) => ({
            label: `Export as ${format === "ndjson" ? "NDJSON" : format.toUpperCase()}`,
            icon: "download" as const,
            disabledBecause: filters === undefined ? "There is nothing to export" : undefined,
            onChoose: () => download(format),
          })),
        ]}
      />
    </div>
  );
}
