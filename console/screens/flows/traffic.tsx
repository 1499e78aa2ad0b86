import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { AreaChart, shadeOf } from "../../components/charts/area-chart.tsx";
import { clock, day } from "../../components/time/format.ts";
import { Button } from "../../components/ui/button.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Segments } from "../../components/ui/segments.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { trafficQuery, type FlowFilter, type FlowRange, type FlowSplit } from "../../data/flows.ts";
import { bytes, bytesPerSecond } from "../../text/numbers.ts";
import { portText } from "../../text/ports.ts";

const SPLITS = [
  { value: "protocol", label: "Protocol" },
  { value: "port", label: "Port" },
  { value: "src", label: "From" },
  { value: "dst", label: "To" },
  { value: "exporter", label: "Exporter" },
] as const satisfies readonly { value: FlowSplit; label: string }[];

interface TrafficProps {
  readonly filter: FlowFilter;
  readonly range: FlowRange;
  readonly split: string | undefined;
  readonly onSplit: (split: FlowSplit) => void;
  readonly onZoom: (fromMs: number, toMs: number) => void;
  readonly onUnzoom: () => void;
}

const HEIGHT = 220;

export function Traffic({ filter, range, split, onSplit, onZoom, onUnzoom }: TrafficProps) {
  const chosen = SPLITS.find(({ value }) => value === split)?.value ?? "protocol";
  const [isTable, setTable] = useState(false);
  const traffic = useQuery(trafficQuery(filter, range, chosen));
  const seconds = traffic.data?.interval_secs ?? 1;
  const series = (traffic.data?.series ?? []).map(({ key, bytes: values }) => ({
    name: chosen === "port" && key !== "other" ? portText(key) : key,
    isOther: key === "other",
    values: values.map((value) => value / seconds),
  }));
  // A service that is younger than the period before has nothing to compare with.
  const before = traffic.data?.previous?.bytes.map((value) => value / seconds);
  const previous = before?.some((value) => value > 0) ? before : undefined;
  const total = (traffic.data?.series ?? []).reduce(
    (sum, { bytes: values }) => sum + values.reduce((a, b) => a + b, 0),
    0,
  );
  return (
    <>
      <SectionHeading
        right={
          <div className="flex items-center gap-2">
            <Segments label="Split by" value={chosen} options={SPLITS} onChange={onSplit} />
            <Button look="quiet" className="max-md:hidden" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
              {isTable ? "Show the chart" : "Show as a table"}
            </Button>
          </div>
        }
      >
        Traffic{total > 0 && <span className="ml-2 font-normal text-ink3">{bytes(total)} in all</span>}
      </SectionHeading>
      {traffic.error !== null && traffic.data === undefined ? (
        <Failure error={traffic.error} onRetry={() => void traffic.refetch()} />
      ) : traffic.data === undefined ? (
        <Skeleton className="h-[244px]" />
      ) : (
        <div aria-busy={traffic.isPlaceholderData} className={traffic.isPlaceholderData ? "opacity-60" : ""}>
          {isTable ? (
            <TrafficTable timesMs={traffic.data.timestamps} series={series} />
          ) : (
            <AreaChart
              label={`Traffic over time, split by ${chosen}: ${bytes(total)} in all`}
              timesMs={traffic.data.timestamps}
              stepMs={seconds * 1000}
              series={series}
              previous={previous}
              format={bytesPerSecond}
              height={HEIGHT}
              onZoom={onZoom}
              onUnzoom={onUnzoom}
            />
          )}
          <Legend series={series} hasPrevious={previous !== undefined} />
        </div>
      )}
    </>
  );
}

interface NamedSeries {
  readonly name: string;
  readonly isOther: boolean;
  readonly values: readonly number[];
}

function Legend({ series, hasPrevious }: { series: readonly NamedSeries[]; hasPrevious: boolean }) {
  return (
    <ul aria-label="Legend" className="flex min-h-6 flex-wrap items-center gap-x-4 gap-y-1 pl-16 text-2xs text-ink2">
      {series.map(({ name, isOther }, index) => (
        <li key={name} className="flex items-center gap-1.5">
          <span
            aria-hidden
            className="size-2.5 rounded-sm"
            style={{ background: shadeOf(index, series.length, isOther) }}
          />
          {name}
        </li>
      ))}
      {hasPrevious && (
        <li className="flex items-center gap-1.5">
          <svg aria-hidden width="18" height="4">
            <line x1="0" x2="18" y1="2" y2="2" stroke="var(--ink2)" strokeDasharray="4 3" />
          </svg>
          the period before
        </li>
      )}
    </ul>
  );
}

function TrafficTable({ timesMs, series }: { timesMs: readonly number[]; series: readonly NamedSeries[] }) {
  return (
    <div className="h-[220px] overflow-auto" tabIndex={0} role="region" aria-label="Traffic as a table">
      <table className="w-full text-xs">
        <thead className="sticky top-0 bg-panel text-left text-ink3">
          <tr>
            <th className="py-1 font-medium">Time</th>
            {series.map(({ name }) => (
              <th key={name} className="py-1 text-right font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {timesMs.map((atMs, index) => (
            <tr key={atMs} className="border-t border-line">
              <td className="py-1 whitespace-nowrap">{`${day(atMs)} ${clock(atMs)}`}</td>
              {series.map(({ name, values }) => (
                <td key={name} className="py-1 text-right text-ink2">
                  {bytesPerSecond(values[index] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
