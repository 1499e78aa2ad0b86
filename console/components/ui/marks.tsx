// Small marks that stand for a number or a person.

const scoreColor = (value: number) =>
  value >= 75 ? "var(--m-critical)" : value >= 55 ? "var(--m-high)" : value >= 35 ? "var(--m-medium)" : "var(--m-low)";

export function Score({ value, size = 26 }: { value: number; size?: number }) {
  const radius = size / 2 - 2;
  const round = 2 * Math.PI * radius;
  return (
    <svg width={size} height={size} role="img" aria-label={`threat score ${value} of 100`} className="shrink-0">
      <circle cx={size / 2} cy={size / 2} r={radius} fill="none" stroke="var(--line)" strokeWidth={2.5} />
      <circle
        cx={size / 2}
        cy={size / 2}
        r={radius}
        fill="none"
        stroke={scoreColor(value)}
        strokeWidth={2.5}
        strokeLinecap="round"
        strokeDasharray={`${(round * value) / 100} ${round}`}
        transform={`rotate(-90 ${size / 2} ${size / 2})`}
      />
      <text
        x="50%"
        y="50%"
        dy="0.36em"
        textAnchor="middle"
        fontSize={size * 0.38}
        fontWeight={600}
        fill="var(--ink)"
        aria-hidden
      >
        {value}
      </text>
    </svg>
  );
}

export function initials(name: string): string {
  const words = name
    .split("@")[0]!
    .split(/[.\s_-]+/)
    .filter((word) => word !== "");
  return words
    .map((word) => word[0]!.toUpperCase())
    .join("")
    .slice(0, 2);
}

export function Person({ name }: { name: string }) {
  return (
    <span
      role="img"
      aria-label={name}
      title={name}
      className="inline-grid size-6 shrink-0 place-items-center rounded-full bg-accent-soft text-[10px] font-semibold text-accent ring-1 ring-accent/25"
    >
      {initials(name)}
    </span>
  );
}
