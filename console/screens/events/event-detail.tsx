import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { full } from "../../components/time/format.ts";
import { absoluteRange } from "../../components/time/range.ts";
import { IconButton } from "../../components/ui/button.tsx";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { SeverityLabel } from "../../components/ui/severity.tsx";
import type { Event } from "../../data/client.ts";
import { entityKindOf, fieldRows, type FieldRow } from "./fields.ts";

const AROUND_MS = 5 * 60_000;
const ON_AXIS_MS = 15 * 60_000;
const VALUE_CHARACTERS_MAX = 1000;

export interface FieldActions {
  readonly columns: readonly string[];
  readonly onFilter: (field: string, value: string, isOut: boolean) => void;
  readonly onColumn: (field: string) => void;
}

/** Everything that an event says, with what can be done with each value. */
export function EventDetail({ event, actions }: { event: Event; actions: FieldActions }) {
  const rows = fieldRows(event);
  const atMs = Date.parse(event.timestamp);
  const link = `${location.origin}/events?${new URLSearchParams({
    from: new Date(atMs - AROUND_MS).toISOString(),
    to: new Date(atMs + AROUND_MS).toISOString(),
    event: event.id,
  }).toString()}`;
  return (
    <div className="border-y border-line bg-panel py-3 pr-4 pl-11 max-sm:pl-4">
      <div className="mb-2 flex flex-wrap items-center gap-x-1 gap-y-1">
        <span className="mr-2">
          <SeverityLabel severity={event.severity} />
        </span>
        <span className="mr-auto text-xs text-ink3">{full(event.timestamp)}</span>
        <DetailLink
          icon="clock-3"
          to="/events"
          search={{ ...absoluteRange(atMs - AROUND_MS, atMs + AROUND_MS), event: event.id }}
        >
          Around it
        </DetailLink>
        <DetailLink icon="activity" to="/axis" search={absoluteRange(atMs - ON_AXIS_MS, atMs + ON_AXIS_MS)}>
          On the axis
        </DetailLink>
        <DetailLink icon="bell" to="/alerts" search={{ event_id: event.id }}>
          Alerts with it
        </DetailLink>
        <CopyButton text={JSON.stringify(event, null, 2)} label="Copy the event as JSON">
          <span className="text-xs">JSON</span>
        </CopyButton>
        <CopyButton text={link} label="Copy a link to the event">
          <span className="text-xs">Link</span>
        </CopyButton>
      </div>
      <div className="grid gap-x-10 xl:grid-cols-2">
        <Fields label="What was sent" rows={rows.filter(isSent)} actions={actions} />
        <Fields label="What is known besides" rows={rows.filter((row) => !isSent(row))} actions={actions} />
      </div>
    </div>
  );
}

const isSent = ({ path }: FieldRow) => path === "raw" || path.startsWith("raw.");

function Fields({ label, rows, actions }: { label: string; rows: readonly FieldRow[]; actions: FieldActions }) {
  return (
    <ul aria-label={label} className="min-w-0 text-xs">
      {rows.map((row, index) => (
        // Elements of a list share their path, and the fields of an event never change places.
        // oxlint-disable-next-line react/no-array-index-key
        <Field key={index} row={row} actions={actions} />
      ))}
    </ul>
  );
}

interface DetailLinkProps {
  readonly icon: IconName;
  readonly to: "/events" | "/axis" | "/alerts";
  readonly search: object;
  readonly children: string;
}

function DetailLink({ icon, to, search, children }: DetailLinkProps) {
  return (
    <Link
      to={to}
      search={search as never}
      className="inline-flex h-7 items-center gap-1.5 rounded-md px-2 text-xs text-ink2 hover:bg-hover hover:text-ink"
    >
      <Icon name={icon} size={13} />
      {children}
    </Link>
  );
}

function Field({ row, actions }: { row: FieldRow; actions: FieldActions }) {
  const indent = { paddingLeft: row.depth * 14 };
  if (row.value === undefined) {
    return (
      <li className="flex min-h-6 items-center font-medium text-ink3" style={indent}>
        {row.name}
      </li>
    );
  }
  const value = row.value === null ? null : String(row.value);
  const isColumn = actions.columns.includes(row.path);
  return (
    <li
      data-field={row.path}
      data-value={value ?? undefined}
      className="group grid min-h-6 grid-cols-[minmax(120px,190px)_minmax(0,1fr)_auto] items-start gap-3 rounded hover:bg-hover/70 max-sm:grid-cols-[110px_minmax(0,1fr)]"
    >
      <span className="mono truncate py-0.5 text-ink3" style={indent} title={row.path}>
        {row.name}
      </span>
      <span className="py-0.5">{value === null ? <i className="text-ink3">null</i> : <Value row={row} />}</span>
      {value !== null && (
        <span className="-my-0.5 flex items-center opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 max-sm:col-span-2 max-sm:opacity-100">
          <FieldButton
            icon="plus"
            label={`Filter for ${row.name} ${value}`}
            onClick={() => actions.onFilter(row.path, value, false)}
          />
          <FieldButton
            icon="minus"
            label={`Filter out ${row.name} ${value}`}
            onClick={() => actions.onFilter(row.path, value, true)}
          />
          <FieldButton
            icon="list"
            label={isColumn ? `Remove the column ${row.name}` : `Show ${row.name} as a column`}
            onClick={() => actions.onColumn(row.path)}
          />
          <CopyButton text={value} label={`Copy ${row.name}`} />
        </span>
      )}
    </li>
  );
}

function FieldButton({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  const short = label.length > 80 ? `${label.slice(0, 80)}…` : label;
  return <IconButton icon={icon} label={short} size={13} className="!size-6" onClick={onClick} />;
}

function Value({ row }: { row: FieldRow }) {
  const [isWhole, setWhole] = useState(false);
  const kind = entityKindOf(row.path);
  const text = String(row.value);
  if (kind !== undefined && typeof row.value === "string") return <EntityLink kind={kind} value={text} />;
  const isCut = text.length > VALUE_CHARACTERS_MAX && !isWhole;
  return (
    <span className={`mono break-words whitespace-pre-wrap ${typeof row.value === "string" ? "" : "text-accent"}`}>
      {isCut ? text.slice(0, VALUE_CHARACTERS_MAX) : text}
      {isCut && (
        <button type="button" className="ml-1 text-accent underline" onClick={() => setWhole(true)}>
          … show all {text.length} characters
        </button>
      )}
    </span>
  );
}
