import { useQuery } from "@tanstack/react-query";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { IconButton } from "../../components/ui/button.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Segments } from "../../components/ui/segments.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { talkersQuery, type FlowFilter, type FlowRange, type TalkerDimension } from "../../data/flows.ts";
import { bytes, exact, short } from "../../text/numbers.ts";
import { portText } from "../../text/ports.ts";
import type { FilterSearch } from "./flow-filter.ts";

const DIMENSIONS = [
  { value: "src", label: "From" },
  { value: "dst", label: "To" },
  { value: "port", label: "Port" },
] as const satisfies readonly { value: TalkerDimension; label: string }[];

const ROWS = 12;

interface TalkersProps {
  readonly filter: FlowFilter;
  readonly range: FlowRange;
  readonly dim: string | undefined;
  readonly onDim: (dim: TalkerDimension) => void;
  readonly onRefine: (more: FilterSearch) => void;
}

/** The largest, with bars in the cells. */
export function Talkers({ filter, range, dim, onDim, onRefine }: TalkersProps) {
  const chosen = DIMENSIONS.find(({ value }) => value === dim)?.value ?? "src";
  const talkers = useQuery(talkersQuery(filter, range, chosen, ROWS));
  const most = Math.max(1, ...(talkers.data ?? []).map((row) => row.bytes));
  return (
    <>
      <SectionHeading right={<Segments label="Rank" value={chosen} options={DIMENSIONS} onChange={onDim} />}>
        Top talkers
      </SectionHeading>
      <div className="h-[372px] overflow-y-auto">
        {talkers.error !== null && talkers.data === undefined ? (
          <Failure error={talkers.error} onRetry={() => void talkers.refetch()} />
        ) : talkers.data === undefined ? (
          <Skeleton className="h-full" />
        ) : talkers.data.length === 0 ? (
          <Empty title="No traffic in this time">
            Widen the time or remove a filter. Sources shows which exporters send flows.
          </Empty>
        ) : (
          <table
            aria-busy={talkers.isPlaceholderData}
            className={`w-full text-sm ${talkers.isPlaceholderData ? "opacity-60" : ""}`}
          >
            <thead className="text-left text-2xs text-ink3">
              <tr>
                <th className="py-1 font-medium">{chosen === "port" ? "Port" : "Address"}</th>
                <th className="w-2/5 py-1 font-medium">Bytes</th>
                <th className="py-1 text-right font-medium">Flows</th>
                <th>
                  <span className="sr-only">Filter</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {talkers.data.map((row) => (
                <tr key={row.key} className="border-t border-line">
                  <td className="max-w-0 min-w-36 truncate py-1 pr-2">
                    {chosen === "port" ? (
                      <span className="mono">{portText(row.key)}</span>
                    ) : (
                      <EntityLink kind="address" value={row.key} />
                    )}
                  </td>
                  <td className="py-1">
                    <div className="flex items-center gap-2" title={`${exact(row.bytes)} bytes`}>
                      <span aria-hidden className="h-2 min-w-0 flex-1 rounded-full bg-hover">
                        <span
                          className="block h-full rounded-full bg-accent"
                          style={{ width: `${(row.bytes / most) * 100}%` }}
                        />
                      </span>
                      <span className="w-16 text-right whitespace-nowrap text-ink2">{bytes(row.bytes)}</span>
                    </div>
                  </td>
                  <td className="py-1 pl-2 text-right whitespace-nowrap text-ink2" title={exact(row.flow_count)}>
                    {short(row.flow_count)}
                  </td>
                  <td className="w-8 text-right">
                    {row.key !== "none" && (
                      <IconButton
                        icon="list-filter"
                        size={13}
                        className="size-6"
                        label={`Show only ${row.key}`}
                        onClick={() => onRefine({ [chosen]: row.key })}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}
