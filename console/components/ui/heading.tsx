import type { ReactNode } from "react";

/** The heading of a part of a screen, with what belongs to it on the right. */
export function SectionHeading({ children, right }: { children: ReactNode; right?: ReactNode }) {
  return (
    <div className="mb-2 flex flex-wrap items-center gap-x-2 gap-y-1">
      <h2 className="text-xs font-semibold text-ink">{children}</h2>
      <div className="ml-auto">{right}</div>
    </div>
  );
}

interface PanelProps {
  readonly children: ReactNode;
  /** For tables, which reach the edges. */
  readonly isFlush?: boolean;
  readonly className?: string;
}

/** A part of a screen on a sheet of its own. */
export function Panel({ children, isFlush = false, className = "" }: PanelProps) {
  return (
    <section className={`rounded-xl border border-line bg-panel ${isFlush ? "" : "p-4"} ${className}`}>
      {children}
    </section>
  );
}
