import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { absoluteRange } from "../../components/time/range.ts";
import { useRange, useSetRange } from "../../components/time/use-range.ts";
import { Panel } from "../../components/ui/heading.tsx";
import { ScreenViews } from "../../components/views/screen-views.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { toFlowFilter, type FilterSearch } from "./flow-filter.ts";
import { FlowTable } from "./flow-table.tsx";
import { Pairs } from "./pairs.tsx";
import { Talkers } from "./talkers.tsx";
import { Traffic } from "./traffic.tsx";

const KEPT_IN_VIEWS = ["host", "src", "dst", "port", "protocol", "exporter", "split", "dim", "metric"];

/** Who talks to whom: over time, by the largest, as pairs, and row by row. */
export function FlowsScreen() {
  const search = useSearch({ from: "/flows" });
  const navigate = useNavigate({ from: "/flows" });
  const { fromMs, toMs } = useRange();
  const setRange = useSetRange();
  const { host, src, dst, port, protocol, exporter } = search;
  const filter = useMemo(
    () => toFlowFilter({ host, src, dst, port, protocol, exporter }),
    [host, src, dst, port, protocol, exporter],
  );
  const range = useMemo(() => ({ from: fromMs, to: toMs }), [fromMs, toMs]);
  const refine = (more: FilterSearch) => void navigate({ search: (previous) => ({ ...previous, ...more }) });
  return (
    <main className="flex h-full flex-col overflow-y-auto">
      <div className="flex items-center gap-3 px-4 pt-3">
        <h1 className="text-lg leading-8 font-semibold tracking-tight">Flows</h1>
        <ScreenViews
          screen="flows"
          search={search}
          names={KEPT_IN_VIEWS}
          whole="All traffic"
          keeps="the filters and how the traffic is split"
        />
      </div>
      <div className="px-4 pt-2">
        <FilterBar filter={{ host, src, dst, port, protocol, exporter }} onChange={refine} />
      </div>
      <div className="grid grid-cols-2 gap-4 p-4 max-lg:grid-cols-1">
        <Panel className="col-span-full">
          <Traffic
            filter={filter}
            range={range}
            split={search.split}
            onSplit={(split) => void navigate({ search: (previous) => ({ ...previous, split }) })}
            onZoom={(zoomFromMs, zoomToMs) => setRange(absoluteRange(zoomFromMs, zoomToMs))}
            onUnzoom={() => setRange({})}
          />
        </Panel>
        <Panel>
          <Talkers
            filter={filter}
            range={range}
            dim={search.dim}
            onDim={(dim) => void navigate({ search: (previous) => ({ ...previous, dim }) })}
            onRefine={refine}
          />
        </Panel>
        <Panel>
          <Pairs filter={filter} range={range} onRefine={refine} />
        </Panel>
        <Panel isFlush className="col-span-full">
          <FlowTable filter={filter} range={range} onRefine={refine} />
        </Panel>
      </div>
    </main>
  );
}
