import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ENTITY_ICON, ENTITY_WORD } from "../../../components/entities/entity.ts";
import { Button } from "../../../components/ui/button.tsx";
import { SectionHeading } from "../../../components/ui/heading.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import type { AlertDetail } from "../../../data/client.ts";
import { count } from "../../../text/numbers.ts";
import { notesOf } from "./entity-notes.ts";

const SHOWN_MAX = 8;

/** The things that the events name, the most frequent first. Each leads to its page. */
export function WhoAndWhat({ alert }: { alert: AlertDetail }) {
  const [isWhole, setWhole] = useState(false);
  const { entities } = alert;
  if (entities.length === 0) return null;
  const shown = isWhole ? entities : entities.slice(0, SHOWN_MAX);
  const notes = notesOf(alert.related_events);
  return (
    <section>
      <SectionHeading>Who and what</SectionHeading>
      <ul className="grid grid-cols-2 gap-2 max-md:grid-cols-1">
        {shown.map(({ kind, value, count: times }) => {
          const note = notes.get(value.toLowerCase());
          return (
            <li key={`${kind} ${value}`}>
              <Link
                to="/entity/$kind/$value"
                params={{ kind, value }}
                search={({ range, from, to }: Record<string, unknown>) => ({ range, from, to }) as never}
                className="flex items-center gap-2.5 rounded-lg border border-line bg-raised px-3 py-2 hover:border-line2"
              >
                <Icon name={ENTITY_ICON[kind]} size={15} className="text-ink3" />
                <span className="min-w-0 flex-1">
                  <span className="block truncate text-2xs text-ink3">
                    {ENTITY_WORD[kind]}
                    {note !== undefined && ` · ${note}`}
                    {times > 1 && ` · ${count(times, "event")}`}
                  </span>
                  <span className="mono block truncate text-sm text-ink">{value}</span>
                </span>
                <Icon name="arrow-right" size={12} className="text-ink3" />
              </Link>
            </li>
          );
        })}
      </ul>
      {entities.length > SHOWN_MAX && !isWhole && (
        <Button look="quiet" className="mt-1" onClick={() => setWhole(true)}>
          {entities.length - SHOWN_MAX} more
        </Button>
      )}
      {isWhole && alert.entities_cut && (
        <p className="mt-1 text-2xs text-ink3">There were more; these are the most frequent.</p>
      )}
    </section>
  );
}
