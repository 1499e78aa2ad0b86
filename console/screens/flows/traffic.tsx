import { useQuery } from "@tanstack/react-query";
import { AreaChart, shadeOf } from "../../components/charts/area-chart.tsx";
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
      <SectionHeading right={<Segments label="Split by" value={chosen} options={SPLITS} onChange={onSplit} />}>
        Traffic
        <Total bytes={traffic.data === undefined ? undefined : total} />
      </SectionHeading>
      {traffic.error !== null && traffic.data === undefined ? (
        <Failure error={traffic.error} onRetry={() => void traffic.refetch()} />
      ) : traffic.data === undefined ? (
        <Skeleton className="h-[244px]" />
      ) : (
        <div aria-busy={traffic.isPlaceholderData} className={traffic.isPlaceholderData ? "opacity-60" : ""}>
          <AreaChart
            label={`Traffic over time, split by ${chosen}: ${bytes(total)} in all`}
            title="Traffic over time"
            timesMs={traffic.data.timestamps}
            stepMs={seconds * 1000}
            series={series}
            previous={previous}
            format={bytesPerSecond}
            height={HEIGHT}
            onZoom={onZoom}
            onUnzoom={onUnzoom}
          />
          <Legend series={series} hasPrevious={previous !== undefined} />
        </div>
      )}
    </>
  );
}

/** Takes its room before it is known: on a phone, the choice beside it wraps. */
function Total({ bytes: total }: { bytes: number | undefined }) {
  if (total === 0) return null;
  const text = `${bytes(total ?? 10_000_000_000)} in all`;
  return (
    <span
      aria-hidden={total === undefined}
      className={`ml-2 font-normal text-ink3 ${total === undefined ? "invisible" : ""}`}
    >
      {text}
    </span>
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
