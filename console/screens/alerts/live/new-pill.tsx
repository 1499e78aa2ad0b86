import { useEffect } from "react";
import { keyLabel, KEYS } from "../../../app/keys.ts";
import { Icon } from "../../../components/ui/icons.tsx";
import { count } from "../../../text/numbers.ts";
import type { Waiting } from "./waiting.ts";

interface NewPillProps {
  readonly waiting: Waiting;
  readonly onLetIn: () => void;
}

/** What waits to be let in. Announced, and counted in the title of the page. */
export function NewPill({ waiting: { alerts, isOverfull }, onLetIn }: NewPillProps) {
  useEffect(() => {
    document.title = `${alerts.length > 0 ? `(${alerts.length}${isOverfull ? "+" : ""}) ` : ""}Alerts · Tocsin`;
    return () => {
      document.title = "Tocsin";
    };
  }, [alerts.length, isOverfull]);
  const words = isOverfull
    ? alerts.length > 0
      ? `More than ${count(alerts.length, "new alert")}`
      : "Alerts may have been missed: show them"
    : `${alerts.length} new ${alerts.length === 1 ? "alert" : "alerts"}`;
  return (
    <div role="status" aria-live="polite" className="relative z-10 h-0">
      {(alerts.length > 0 || isOverfull) && (
        <button
          type="button"
          onClick={onLetIn}
          className="on-accent absolute -top-[58px] right-4 flex items-center gap-2 rounded-full bg-accent px-3 py-1.5 text-xs font-semibold text-accent-ink shadow-(--shadow)"
        >
          <Icon name="arrow-up" size={13} />
          {words}
          <kbd aria-hidden>{keyLabel(KEYS.everywhere.letIn.keys[0])}</kbd>
        </button>
      )}
    </div>
  );
}
