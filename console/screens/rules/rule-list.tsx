import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ReactNode } from "react";
import { useNow } from "../../components/time/use-range.ts";
import { Icon } from "../../components/ui/icons.tsx";
import type { Rule } from "../../data/client.ts";
import { usePreferences } from "../../data/preferences.ts";
import { useMay } from "../../data/session.ts";
import { COLUMNS, RuleRow } from "./rule-row.tsx";
import { isRule, type Sort } from "./rule-search.ts";

const ROW_HEIGHT = { comfortable: 52, compact: 34 } as const;
const HEADING_HEIGHT = 29;
const LOAD_AHEAD = 20;

interface RuleListProps {
  readonly rules: readonly Rule[];
  readonly total: number;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
  /** The row that keys act on. */
  readonly currentId: string | undefined;
  /** The name or the id of the rule in the panel. */
  readonly open: string | undefined;
  readonly isDimmed: boolean;
  readonly switchingId: string | undefined;
  readonly onOpen: (rule: Rule) => void;
  readonly onSwitch: (rule: Rule, isOn: boolean) => void;
  readonly onNearEnd: () => void;
}

export function RuleList(props: RuleListProps) {
  const { rules, total, sort, onSort, currentId, open, onNearEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const { density } = usePreferences();
  const nowMs = useNow();
  const mayWrite = useMay("rules:write");
  const isNarrow = open !== undefined;
  const alertsMost = rules.reduce((most, { stats }) => Math.max(most, stats.alerts_7d), 1);
  const list = useVirtualizer({
    count: rules.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT[density],
    overscan: 8,
    // The heading scrolls with the rows, and covers the first of them.
    scrollMargin: HEADING_HEIGHT,
    scrollPaddingStart: HEADING_HEIGHT,
    onChange: (instance) => {
      if ((instance.getVirtualItems().at(-1)?.index ?? 0) >= rules.length - LOAD_AHEAD) onNearEnd();
    },
  });
  const currentIndex = rules.findIndex(({ id }) => id === currentId);
  useEffect(() => {
    if (currentIndex >= 0) list.scrollToIndex(currentIndex, { align: "auto" });
  }, [currentIndex, list]);
  useEffect(() => list.measure(), [density, list]);
  const heading = (name: ReactNode, of?: Sort, className = "") => (
    <span
      role="columnheader"
      aria-sort={of === sort ? (of === "name" ? "ascending" : "descending") : undefined}
      className={className}
    >
      {of === undefined ? (
        name
      ) : (
        <button
          type="button"
          onClick={() => onSort(of)}
          className={`inline-flex h-6 items-center gap-0.5 hover:text-ink ${of === sort ? "text-ink" : ""}`}
        >
          {name}
          {of === sort && <Icon name={of === "name" ? "chevron-up" : "chevron-down"} size={11} />}
        </button>
      )}
    </span>
  );
  return (
    <div
      ref={scroller}
      role="table"
      aria-label="Rules"
      aria-rowcount={total + 1}
      className={`min-h-0 flex-1 overflow-y-auto ${props.isDimmed ? "opacity-60" : ""}`}
      tabIndex={0}
    >
      <div role="rowgroup" className="sticky top-0 z-10 bg-app" style={{ height: HEADING_HEIGHT }}>
        <div
          role="row"
          data-narrow={isNarrow}
          className={`grid ${COLUMNS} h-full items-center gap-4 border-b border-line px-4 text-2xs font-medium text-ink3 max-md:gap-3`}
        >
          <span role="columnheader">
            <span className="sr-only">Severity</span>
          </span>
          {heading("Rule", "name")}
          {!isNarrow && heading("Watches", undefined, "max-md:hidden")}
          {heading(
            <span>
              Alerts<span className="max-md:sr-only">, 7 days</span>
            </span>,
            "alerts",
            "text-right whitespace-nowrap",
          )}
          {!isNarrow && heading("False", "false", "text-right max-md:hidden")}
          {heading("Last", "last", `text-right max-md:hidden ${isNarrow ? "max-xl:hidden" : ""}`)}
          {heading("On", undefined, "text-right")}
        </div>
      </div>
      <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const rule = rules[item.index]!;
          const isCurrent = rule.id === currentId;
          return (
            <div
              key={rule.id}
              role="row"
              aria-rowindex={item.index + 2}
              data-narrow={isNarrow}
              className={`absolute inset-x-0 grid ${COLUMNS} items-center gap-4 border-b border-line px-4 max-md:gap-3 ${isCurrent ? "bg-accent-soft shadow-[inset_3px_0_0_var(--accent)]" : "hover:bg-hover/60"}`}
              style={{ top: item.start - HEADING_HEIGHT, height: item.size }}
            >
              <RuleRow
                rule={rule}
                isOpen={isRule(rule, open)}
                isNarrow={isNarrow}
                isCompact={density === "compact"}
                alertsMost={alertsMost}
                nowMs={nowMs}
                mayWrite={mayWrite}
                isSwitching={props.switchingId === rule.id}
                onOpen={() => props.onOpen(rule)}
                onSwitch={(isOn) => props.onSwitch(rule, isOn)}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}
