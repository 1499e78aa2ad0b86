import { exact } from "../../text/numbers.ts";

interface SparklineProps {
  readonly values: readonly number[];
  /** What it shows; the least, the most and the last are added. */
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
}

/** A line without axes, from zero. */
export function Sparkline({ values, label, width = 120, height = 24 }: SparklineProps) {
  const most = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)} ${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`,
  );
  const line = `M${points.join("L")}`;
  const numbers = [Math.min(...values), Math.max(...values), values.at(-1) ?? 0].map((value) => exact(value));
  const words = values.length === 0 ? label : `${label}: least ${numbers[0]}, most ${numbers[1]}, last ${numbers[2]}`;
  return (
    <svg width={width} height={height} role="img" aria-label={words} className="block shrink-0">
      <title>{words}</title>
      {values.length > 0 && (
        <>
          <path d={`${line}L${width} ${height}L0 ${height}Z`} fill="var(--accent)" opacity={0.14} />
          <path d={line} fill="none" stroke="var(--accent)" strokeWidth={1.4} strokeLinejoin="round" />
        </>
      )}
    </svg>
  );
}
