import type { Severity } from "../../data/client.ts";

const LEVEL: Record<Severity, number> = { critical: 4, high: 3, medium: 2, low: 1, info: 0 };

export const SEVERITY_TEXT: Record<Severity, string> = {
  critical: "text-critical",
  high: "text-high",
  medium: "text-medium",
  low: "text-low",
  info: "text-info",
};

export const severityColor = (severity: Severity) => `var(--m-${severity})`;

/** Bars, of which the number that is filled says the severity without colour. */
export function SeverityBars({ severity, size = 16 }: { severity: Severity; size?: number }) {
  const level = LEVEL[severity];
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" role="img" aria-label={severity} className="shrink-0">
      {[0, 1, 2, 3].map((bar) => (
        <rect
          key={bar}
          x={1 + bar * 3.75}
          y={11 - bar * 3}
          width={2.75}
          height={4 + bar * 3}
          rx={1}
          fill={bar < level ? severityColor(severity) : "var(--line2)"}
          opacity={bar < level ? 1 : 0.55}
        />
      ))}
    </svg>
  );
}

export function SeverityLabel({ severity }: { severity: Severity }) {
  return (
    <span
      className={`inline-flex items-center gap-1.5 text-2xs font-semibold tracking-wide uppercase ${SEVERITY_TEXT[severity]}`}
    >
      <SeverityBars severity={severity} size={13} />
      {severity}
    </span>
  );
}
