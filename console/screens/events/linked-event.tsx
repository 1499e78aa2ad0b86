import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Sentence } from "../../components/entities/sentence.tsx";
import { IconButton } from "../../components/ui/button.tsx";
import { Failure } from "../../components/ui/states.tsx";
import type { Event } from "../../data/client.ts";
import { eventQuery } from "../../data/events.ts";
import { EventDetail, type FieldActions } from "./event-detail.tsx";

interface LinkedEventProps {
  readonly id: string;
  readonly rows: readonly Event[];
  /** The rows are those of the question before. */
  readonly isDimmed: boolean;
  readonly actions: FieldActions;
  readonly onClose: () => void;
}

/** The event that a link leads to, above the list where it is not among the first rows. */
export function LinkedEvent({ id, rows, isDimmed, actions, onClose }: LinkedEventProps) {
  // Decided once: rows come and go while the reader scrolls and asks further questions.
  const [isInList, setInList] = useState<boolean>();
  if (isInList === undefined && !isDimmed) setInList(rows.some((row) => row.id === id));
  const event = useQuery({ ...eventQuery(id), enabled: isInList === false });
  if (isInList !== false) return null;
  if (event.error !== null) return <Failure error={event.error} />;
  if (event.data === undefined) return null;
  return (
    <section
      aria-label="The event of the link"
      className="max-h-[45%] shrink-0 overflow-y-auto border-b-2 border-accent bg-panel"
    >
      <div className="flex items-center gap-2 py-1 pr-2 pl-11 text-sm max-sm:pl-4">
        <p className="min-w-0 flex-1 truncate text-ink2">
          <Sentence event={event.data} />
        </p>
        <IconButton icon="x" label="Close the event" onClick={onClose} />
      </div>
      <EventDetail event={event.data} actions={actions} />
    </section>
  );
}
