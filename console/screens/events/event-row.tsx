import { memo } from "react";
import { Sentence } from "../../components/entities/sentence.tsx";
import { clockSeconds, day } from "../../components/time/format.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { SeverityBars } from "../../components/ui/severity.tsx";
import type { Event } from "../../data/client.ts";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../text/domains.ts";
import { valuesAt } from "./fields.ts";

export const ROW_HEIGHT = 34;

/** Time, severity, domain, sentence, and then the columns that were chosen. */
export const gridColumns = (columns: readonly string[], hasDay: boolean) =>
  `20px ${hasDay ? 142 : 66}px 18px 18px minmax(260px,1fr)${columns.map(() => " minmax(90px,160px)").join("")}`;

interface EventRowProps {
  readonly event: Event;
  readonly columns: readonly string[];
  readonly hasDay: boolean;
  readonly isCursor: boolean;
  readonly isOpen: boolean;
  readonly isNew: boolean;
  readonly onToggle: (id: string) => void;
}

export const EventRow = memo(function EventRow(props: EventRowProps) {
  const { event, columns, hasDay, isCursor, isOpen, isNew, onToggle } = props;
  const domain = domainOf(event.source);
  return (
    // Pointing anywhere opens the row; the button does it for keys and readers.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
    <div
      role="row"
      aria-current={isCursor || undefined}
      onClick={({ target }) => {
        if ((target as Element).closest("a, button") === null && getSelection()?.isCollapsed !== false) {
          onToggle(event.id);
        }
      }}
      style={{ gridTemplateColumns: gridColumns(columns, hasDay), height: ROW_HEIGHT }}
      className={`grid cursor-pointer items-center gap-2 px-3 text-sm max-sm:!grid-cols-[20px_18px_minmax(0,1fr)_auto] ${
        isCursor ? "bg-accent-soft shadow-[inset_3px_0_0_var(--accent)]" : isNew ? "bg-accent-soft/50" : ""
      } ${isCursor ? "" : "hover:bg-hover/60"}`}
    >
      <span role="cell">
        <button
          type="button"
          data-row={event.id}
          aria-expanded={isOpen}
          aria-label={isOpen ? "Close the event" : "Open the event"}
          onClick={() => onToggle(event.id)}
          className="grid size-6 -translate-x-1 place-items-center rounded text-ink3 hover:text-ink"
        >
          <Icon name={isOpen ? "chevron-down" : "chevron-right"} size={14} />
        </button>
      </span>
      <time
        role="cell"
        dateTime={event.timestamp}
        title={event.timestamp}
        className="mono whitespace-nowrap text-ink2 max-sm:order-4"
      >
        {hasDay && <span className="text-ink3 max-sm:hidden">{day(event.timestamp)} </span>}
        {clockSeconds(event.timestamp)}
      </time>
      <span role="cell" className="grid max-sm:order-2">
        <SeverityBars severity={event.severity} size={14} />
      </span>
      <span role="cell" className="text-ink3 max-sm:hidden" title={DOMAIN_WORD[domain]}>
        <Icon name={DOMAIN_ICON[domain]} size={14} label={DOMAIN_WORD[domain]} />
      </span>
      <span role="cell" className="words truncate text-ink2 max-sm:order-3">
        <Sentence event={event} />
      </span>
      {columns.map((field) => {
        const values = valuesAt(event, field).map(String);
        return (
          <span
            key={field}
            role="cell"
            data-field={field}
            data-value={values[0]}
            title={values.join(", ")}
            className="mono truncate text-xs text-ink2 max-sm:hidden"
          >
            {values.join(", ")}
          </span>
        );
      })}
    </div>
  );
});
