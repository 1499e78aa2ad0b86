import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { clock, day } from "../../components/time/format.ts";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { FLOWS_MAX, flowsQuery, type Flow, type FlowFilter, type FlowRange } from "../../data/flows.ts";
import { bytes, exact } from "../../text/numbers.ts";
import { portText } from "../../text/ports.ts";
import type { FilterSearch } from "./flow-filter.ts";

const ROW_HEIGHT = 32;
const COLUMNS =
  "grid-cols-[minmax(120px,1.1fr)_minmax(150px,1.6fr)_minmax(150px,1.6fr)_minmax(90px,0.9fr)_90px_80px_minmax(100px,1fr)]";

interface FlowTableProps {
  readonly filter: FlowFilter;
  readonly range: FlowRange;
  readonly onRefine: (more: FilterSearch) => void;
}

/** Flow by flow, newest first. */
export function FlowTable({ filter, range, onRefine }: FlowTableProps) {
  const flows = useInfiniteQuery(flowsQuery(filter, range));
  const scroller = useRef<HTMLDivElement>(null);
  const rows = flows.data?.pages.flatMap((page) => page.flows) ?? [];
  const total = flows.data?.pages[0]?.total ?? 0;
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
    onChange: (instance) => {
      const last = instance.getVirtualItems().at(-1)?.index ?? 0;
      if (last >= rows.length - 20 && flows.hasNextPage && !flows.isFetchingNextPage) void flows.fetchNextPage();
    },
  });
  if (flows.error !== null && flows.data === undefined) {
    return <Failure error={flows.error} onRetry={() => void flows.refetch()} />;
  }
  return (
    <>
      <div className="flex items-baseline gap-2 px-4 pt-3 pb-2">
        <h2 className="text-xs font-semibold">Flows</h2>
        <span className="text-2xs text-ink3">
          {exact(total)} in this time
          {total > FLOWS_MAX && `; the newest ${exact(FLOWS_MAX)} can be scrolled through`}
        </span>
      </div>
      <div
        ref={scroller}
        role="table"
        aria-label="Flows"
        aria-rowcount={rows.length + 1}
        tabIndex={0}
        aria-busy={flows.isPlaceholderData}
        className={`h-[420px] overflow-auto border-t border-line ${flows.isPlaceholderData ? "opacity-60" : ""}`}
      >
        <div className="min-w-[900px]">
          <div
            role="row"
            className={`sticky top-0 z-10 grid ${COLUMNS} gap-3 border-b border-line bg-panel px-4 py-1.5 text-2xs font-medium text-ink3`}
          >
            {["Minute", "From", "To", "Service", "Bytes", "Packets", "Exporter"].map((name) => (
              <span key={name} role="columnheader">
                {name}
              </span>
            ))}
          </div>
          {flows.data === undefined ? (
            <Skeleton className="m-4 h-72" />
          ) : (
            <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
              {list.getVirtualItems().map((item) => (
                <div
                  key={rows[item.index]!.id}
                  role="row"
                  aria-rowindex={item.index + 2}
                  className={`absolute inset-x-0 grid ${COLUMNS} items-center gap-3 border-b border-line px-4 text-xs hover:bg-hover/60`}
                  style={{ top: item.start, height: item.size }}
                >
                  <FlowCells flow={rows[item.index]!} onRefine={onRefine} />
                </div>
              ))}
            </div>
          )}
        </div>
      </div>
    </>
  );
}

function FlowCells({ flow, onRefine }: { flow: Flow; onRefine: (more: FilterSearch) => void }) {
  const service = Math.min(flow.src_port, flow.dst_port);
  return (
    <>
      <span role="cell" className="whitespace-nowrap text-ink2">
        {day(flow.window_start)} {clock(flow.window_start)}
      </span>
      <Endpoint address={flow.src_ip} port={flow.src_port} hostname={flow.src_hostname} />
      <Endpoint address={flow.dst_ip} port={flow.dst_port} hostname={flow.dst_hostname} />
      <span role="cell" className="truncate">
        <button
          type="button"
          className="mono text-ink2 hover:text-ink hover:underline"
          title="Show only this port"
          onClick={() => onRefine({ port: String(service) })}
        >
          {flow.protocol_name.toLowerCase()}
          {service > 0 && ` ${portText(service)}`}
        </button>
      </span>
      <span role="cell" className="text-ink2" title={`${exact(flow.bytes)} bytes`}>
        {bytes(flow.bytes)}
      </span>
      <span role="cell" className="text-ink2">
        {exact(flow.packets)}
      </span>
      <span role="cell" className="mono truncate text-ink3">
        {flow.exporter_ip}
      </span>
    </>
  );
}

function Endpoint({ address, port, hostname }: { address: string; port: number; hostname: string | null }) {
  return (
    <span role="cell" className="min-w-0 truncate" title={hostname ?? undefined}>
      <EntityLink kind="address" value={address} />
      {port > 0 && <span className="mono text-ink3">:{port}</span>}
      {hostname !== null && <span className="ml-1.5 text-2xs text-ink3">{hostname}</span>}
    </span>
  );
}
