import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Icon } from "../../components/ui/icons.tsx";
import { SeverityBars } from "../../components/ui/severity.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import type { Severity } from "../../data/client.ts";
import { literally } from "../../data/event-conditions.ts";
import { fieldValuesQuery, type EventQuestion, type FieldValues } from "../../data/events.ts";
import { SEVERITIES } from "../../data/severity.ts";
import { exact, short } from "../../text/numbers.ts";
import { portText } from "../../text/ports.ts";
import { hasCondition, toggled, writeFilter, type EventFilter } from "./address.ts";
import { FACETS, openFacets, rememberFacets, type Facet } from "./facet-fields.ts";
import { valueWords } from "./words.ts";

const SHOWN_FIRST = 6;
const SHOWN_MAX = 30;

interface FacetsProps {
  readonly question: EventQuestion;
  readonly filter: EventFilter;
  readonly onFilter: (field: string, value: string, isOut: boolean) => void;
}

/** The values that the events have, with their counts: a click filters for one, a click with Shift filters it out. */
export function Facets({ question, filter, onFilter }: FacetsProps) {
  const [open, setOpen] = useState(openFacets);
  const fields = FACETS.filter(({ field }) => open.has(field)).map(({ field }) => field);
  const values = useQuery({ ...fieldValuesQuery(question, fields, SHOWN_MAX), enabled: fields.length > 0 });
  const toggle = (field: string) => {
    const next = new Set(open);
    if (!next.delete(field)) next.add(field);
    rememberFacets(next);
    setOpen(next);
  };
  if (values.error !== null && values.data === undefined) {
    return <p className="p-3 text-center text-xs text-ink3">The values could not be loaded.</p>;
  }
  // All parts at once: how high each is shows only with its values, and nothing may move when they come.
  if (values.data === undefined && fields.length > 0) return <Skeleton className="mx-2 h-96" />;
  return (
    <div aria-busy={values.isPlaceholderData} className={`space-y-1 ${values.isPlaceholderData ? "opacity-60" : ""}`}>
      {FACETS.map((facet) => (
        <FacetPart
          key={facet.field}
          facet={facet}
          isOpen={open.has(facet.field)}
          values={values.data?.get(facet.field)}
          filter={filter}
          onToggle={() => toggle(facet.field)}
          onFilter={onFilter}
        />
      ))}
      <p className="px-2 pt-2 text-2xs text-ink3">Click to filter for a value, with Shift to filter it out.</p>
    </div>
  );
}

interface FacetPartProps {
  readonly facet: Facet;
  readonly isOpen: boolean;
  readonly values: FieldValues | undefined;
  readonly filter: EventFilter;
  readonly onToggle: () => void;
  readonly onFilter: FacetsProps["onFilter"];
}

function inOrder(field: string, values: FieldValues["values"]): FieldValues["values"] {
  if (field !== "severity") return values;
  const place = ({ value }: { value: string }) => SEVERITIES.indexOf(value as Severity);
  return values.toSorted((a, b) => place(a) - place(b));
}

function FacetPart({ facet, isOpen, values, filter, onToggle, onFilter }: FacetPartProps) {
  const [isWhole, setWhole] = useState(false);
  const all = inOrder(facet.field, values?.values ?? []);
  const shown = all.slice(0, isWhole ? SHOWN_MAX : SHOWN_FIRST);
  const isEmpty = isOpen && values !== undefined && all.length === 0;
  const most = Math.max(1, ...all.map(({ count }) => count));
  const left = all.length - shown.length;
  const hidden = isWhole || left === 0 ? (values?.others ?? 0) : 0;
  return (
    <section aria-label={facet.name}>
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={onToggle}
          className="flex h-7 w-full items-center gap-1.5 rounded-md px-1.5 text-xs font-semibold text-ink2 hover:bg-hover hover:text-ink"
        >
          <Icon name={isOpen ? "chevron-down" : "chevron-right"} size={13} className="text-ink3" />
          {facet.name}
          {isEmpty && <span className="ml-auto text-2xs font-normal text-ink3">none</span>}
        </button>
      </h3>
      {isOpen &&
        (values === undefined ? (
          <Skeleton className="mx-2 h-36" />
        ) : isEmpty ? null : (
          <ul className="pb-1.5">
            {shown.map(({ value, count }) => (
              <FacetValue
                key={value}
                field={facet.field}
                value={value}
                count={count}
                share={count / most}
                filter={filter}
                onFilter={onFilter}
              />
            ))}
            {(left > 0 || isWhole) && all.length > SHOWN_FIRST && (
              <li>
                <button
                  type="button"
                  onClick={() => setWhole(!isWhole)}
                  className="h-6 rounded px-2 pl-7 text-2xs text-accent hover:underline"
                >
                  {isWhole ? "Fewer" : `${left} more`}
                </button>
              </li>
            )}
            {hidden > 0 && (
              <li className="h-6 px-2 pl-7 text-2xs/6 text-ink3">{exact(hidden)} events with other values</li>
            )}
          </ul>
        ))}
    </section>
  );
}

interface FacetValueProps {
  readonly field: string;
  readonly value: string;
  readonly count: number;
  readonly share: number;
  readonly filter: EventFilter;
  readonly onFilter: FacetsProps["onFilter"];
}

function FacetValue({ field, value, count, share, filter, onFilter }: FacetValueProps) {
  const isChosen = hasCondition(filter, { field, operator: "=", value: literally(value) });
  const words = field === "raw.dst_port" ? portText(value) : valueWords(field, value);
  return (
    <li>
      <Link
        to="/events"
        search={
          ((previous: object) => ({
            ...previous,
            ...writeFilter(toggled(filter, field, value, false)),
            event: undefined,
          })) as never
        }
        // The browser would open a window.
        onClick={(event) => {
          if (!event.shiftKey) return;
          event.preventDefault();
          onFilter(field, value, true);
        }}
        aria-current={isChosen || undefined}
        title={`${words}: ${exact(count)}`}
        className={`relative isolate flex h-6 items-center gap-2 rounded px-2 pl-7 text-xs hover:bg-hover ${isChosen ? "bg-accent-soft text-accent" : "text-ink2 hover:text-ink"}`}
      >
        {isChosen && <Icon name="check" size={12} className="absolute left-2" label="chosen" />}
        {field === "severity" && !isChosen && (
          <span className="absolute left-2">
            <SeverityBars severity={value as Severity} size={13} />
          </span>
        )}
        <span className="min-w-0 flex-1 truncate">{words}</span>
        <span className="text-2xs text-ink3">{short(count)}</span>
        <span
          aria-hidden
          className="absolute inset-y-0.5 left-6 -z-10 rounded-sm bg-accent/10"
          style={{ width: `calc((100% - 28px) * ${share.toFixed(3)})` }}
        />
      </Link>
    </li>
  );
}
