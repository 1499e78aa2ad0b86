import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Sentence } from "../../components/entities/sentence.tsx";
import { IconButton } from "../../components/ui/button.tsx";
import { Failure } from "../../components/ui/states.tsx";
import type { Event } from "../../data/client.ts";
import { eventQuery } from "../../data/events.ts";
import { EventDetail, type FieldActions } from "./event-detail.tsx";

interface LinkedEventProps {
  readonly id: string | undefined;
  readonly rows: readonly Event[];
  readonly isPending: boolean;
  readonly actions: FieldActions;
}

/** The event that the address names, above the list where it is not among the first rows. */
export function LinkedEvent({ id, rows, isPending, actions }: LinkedEventProps) {
  // Only the event that the page was opened with: the reader has seen any other in the list.
  const [linked, setLinked] = useState(id);
  const isInList = linked !== undefined && rows.some((row) => row.id === linked);
  const event = useQuery({ ...eventQuery(linked ?? ""), enabled: linked !== undefined && !isPending && !isInList });
  if (linked === undefined || isInList || isPending) return null;
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
        <IconButton icon="x" label="Close the event" onClick={() => setLinked(undefined)} />
      </div>
      <EventDetail event={event.data} actions={actions} />
    </section>
  );
}
