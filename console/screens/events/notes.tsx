import type { ReactNode } from "react";
import { Icon } from "../../components/ui/icons.tsx";
import type { EventCounts, UnknownField } from "../../data/events.ts";
import { count } from "../../text/numbers.ts";
import type { EventFilter } from "./address.ts";
import { fieldName } from "./filter-text.ts";

interface NotesProps {
  readonly filter: EventFilter;
  readonly counts: EventCounts | undefined;
  readonly hasWordIndex: boolean;
  readonly onReplace: (unknown: UnknownField) => void;
}

/** What the reader should know about the answer: what a word means, fields that do not exist, days that are lost. */
export function Notes({ filter, counts, hasWordIndex, onReplace }: NotesProps) {
  const missing = counts?.missing ?? [];
  return (
    <>
      {filter.words !== "" && (
        <Note>
          {hasWordIndex
            ? "Every word must begin a word in some field of the event. The counts also find it inside of words."
            : "Every word must occur somewhere in the event, also inside of another word."}{" "}
          Put a phrase in quotes.
        </Note>
      )}
      {counts?.unknownFields.map((unknown) => (
        <Note key={unknown.field} isWarning>
          No event in this time has <code className="mono text-ink">{fieldName(unknown.field)}</code>.
          {unknown.suggestion !== null && (
            <>
              {" "}
              Did you mean{" "}
              <button type="button" className="mono h-6 text-accent underline" onClick={() => onReplace(unknown)}>
                {fieldName(unknown.suggestion)}
              </button>
              ?
            </>
          )}
        </Note>
      ))}
      {missing.length > 0 && (
        <Note isWarning>
          {count(
            missing.reduce((sum, day) => sum + day.missing, 0),
            "event",
          )}{" "}
          of {missing.map(({ day }) => day).join(", ")} cannot be read: the file of that day is lost or damaged.
        </Note>
      )}
    </>
  );
}

function Note({ children, isWarning = false }: { children: ReactNode; isWarning?: boolean }) {
  return (
    <p role={isWarning ? "status" : undefined} className="flex items-center gap-2 px-4 pt-1.5 text-xs text-ink2">
      <Icon name={isWarning ? "triangle-alert" : "info"} size={13} className="text-ink3" />
      <span>{children}</span>
    </p>
  );
}
