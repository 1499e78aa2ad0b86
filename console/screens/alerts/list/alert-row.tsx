import { useQuery } from "@tanstack/react-query";
import { memo, type ReactNode } from "react";
import { age, full } from "../../../components/time/format.ts";
import { Icon } from "../../../components/ui/icons.tsx";
import { Person, Score } from "../../../components/ui/marks.tsx";
import { SeverityBars } from "../../../components/ui/severity.tsx";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../../text/domains.ts";
import { count, exact } from "../../../text/numbers.ts";
import type { Alert, Severity } from "../../../data/client.ts";
import { groupSamplesQuery, type AlertGroup } from "../../../data/alert-groups.ts";
import type { AlertFilters } from "../../../data/alerts.ts";
import { mayPrefetch } from "../../../data/limits.ts";
import { groupTitle } from "./groups.ts";
import { WhenTrack, type Mark } from "./when-track.tsx";

export interface RowLook {
  readonly isCursor: boolean;
  readonly isSelected: boolean;
  readonly isTinted: boolean;
  /** No longer matches the view. */
  readonly isStruck: boolean;
  readonly isCompact: boolean;
  readonly range: { readonly fromMs: number; readonly toMs: number };
  readonly nowMs: number;
}

interface RowActions {
  readonly onSelect: (isRange: boolean) => void;
  readonly onToggle?: () => void;
}

const GRID =
  "grid h-full cursor-pointer grid-cols-[20px_20px_minmax(0,1fr)_124px_30px_26px_44px] items-center gap-3 border-b border-line px-4 @max-[600px]:grid-cols-[20px_20px_minmax(0,1fr)_30px_26px_44px] @max-[460px]:grid-cols-[20px_minmax(0,1fr)_30px_44px]";

interface FrameProps extends RowLook, RowActions {
  readonly severity: Severity;
  readonly title: ReactNode;
  /** What the row is, for the box that selects it. */
  readonly name: string;
  readonly words: ReactNode;
  readonly marks: readonly Mark[];
  readonly score: number | null;
  readonly people: ReactNode;
  readonly atMs: number;
  readonly isIndented: boolean;
}

function SelectBox({ name, isSelected, onSelect, isWhole = false }: FrameProps & { readonly isWhole?: boolean }) {
  const look = isSelected
    ? "border border-accent bg-accent text-accent-ink"
    : isWhole
      ? ""
      : "border border-line2 opacity-60 hover:opacity-100";
  return (
    <button
      type="button"
      role="checkbox"
      aria-checked={isSelected}
      aria-label={`Select ${name}`}
      tabIndex={-1}
      onClick={(event) => {
        event.stopPropagation();
        onSelect(event.shiftKey);
      }}
      className={`grid place-items-center rounded ${isWhole ? `${isSelected ? "" : "absolute -inset-3 size-10"} size-5` : "size-4"} ${look}`}
    >
      {isSelected && <Icon name="check" size={11} strokeWidth={3} />}
    </button>
  );
}

function RowFrame(props: FrameProps) {
  const { severity, title, words, marks, score, people, atMs, range, nowMs } = props;
  const look = props.isCursor
    ? "bg-accent-soft/70 shadow-[inset_3px_0_0_var(--accent)]"
    : props.isSelected
      ? "bg-accent-soft/40"
      : "hover:bg-hover/60";
  return (
    <div
      className={`${GRID} ${look} ${props.isTinted ? "row-tint" : ""} ${props.isIndented ? "pl-10 @max-[460px]:pl-8" : ""}`}
    >
      <span role="gridcell" className="flex @max-[460px]:hidden">
        <SelectBox {...props} />
      </span>
      <span role="gridcell" className="relative">
        {/* Where there is no room for a box, the bars are one. */}
        <span className={props.isSelected ? "@max-[460px]:hidden" : ""}>
          <SeverityBars severity={severity} />
        </span>
        <span className="hidden @max-[460px]:block">
          <SelectBox {...props} isWhole />
        </span>
      </span>
      <div role="gridcell" className={`min-w-0 ${props.isCompact ? "flex items-center gap-3" : ""}`}>
        <p className="flex min-w-0 items-center gap-2">{title}</p>
        <p className={`flex items-center gap-1.5 text-2xs text-ink3 ${props.isCompact ? "shrink-0" : "min-w-0"}`}>
          {words}
        </p>
      </div>
      <span role="gridcell" className="@max-[600px]:hidden">
        <WhenTrack marks={marks} severity={severity} fromMs={range.fromMs} toMs={range.toMs} />
      </span>
      <span role="gridcell" className="grid place-items-center">
        {score === null ? <span className="sr-only">not analysed</span> : <Score value={score} />}
      </span>
      <span role="gridcell" className="@max-[460px]:hidden">
        {people}
      </span>
      <time
        role="gridcell"
        dateTime={new Date(atMs).toISOString()}
        title={`${full(atMs)} (${new Date(atMs).toISOString()})`}
        className="text-right text-xs whitespace-nowrap text-ink2"
      >
        {age(atMs, nowMs)}
      </time>
    </div>
  );
}

const NOBODY = (
  <span
    role="img"
    aria-label="nobody yet"
    title="Nobody yet"
    className="block size-6 rounded-full border border-dashed border-line2"
  />
);

interface WordsProps {
  readonly source: string;
  readonly rule: string;
  readonly events: number;
  readonly more: ReactNode;
  readonly isCompact: boolean;
}

function Words({ source, rule, events, more, isCompact }: WordsProps) {
  const domain = domainOf(source);
  return (
    <>
      <Icon name={DOMAIN_ICON[domain]} size={12} {...(isCompact && { label: DOMAIN_WORD[domain] })} />
      {!isCompact && (
        <>
          <span className="shrink-0">{DOMAIN_WORD[domain]}</span>
          <Dot />
          <span className="mono min-w-0 truncate">{rule}</span>
          <Dot />
        </>
      )}
      <span className="shrink-0">{count(events, "event")}</span>
      {more}
    </>
  );
}

export const Dot = () => (
  <span aria-hidden className="shrink-0 text-line2">
    ·
  </span>
);

const countryOf = ({ enrichment }: Alert) => (enrichment["geo"] as { country?: unknown } | undefined)?.country;

interface AlertRowProps extends RowLook, RowActions {
  readonly alert: Alert;
  readonly isInGroup: boolean;
}

export const AlertRow = memo(function AlertRow({ alert, isInGroup, ...look }: AlertRowProps) {
  const country = countryOf(alert);
  const more = (
    <>
      {typeof country === "string" && (
        <>
          <Dot />
          <span className="shrink-0">{country}</span>
        </>
      )}
      {alert.tags.slice(0, 2).map((tag) => (
        <span key={tag} className="max-w-24 shrink-0 truncate rounded bg-hover px-1 text-ink2 @max-[460px]:hidden">
          {tag}
        </span>
      ))}
    </>
  );
  return (
    <RowFrame
      {...look}
      severity={alert.severity}
      name={alert.title}
      isIndented={isInGroup}
      title={
        <span
          className={`truncate text-sm font-medium ${look.isStruck ? "text-ink3 line-through" : alert.status === "resolved" ? "text-ink2" : ""}`}
        >
          {alert.title}
          {look.isStruck && <span className="sr-only"> (no longer in this view: {alert.status})</span>}
        </span>
      }
      words={
        <Words
          source={alert.source}
          rule={alert.rule_name}
          events={alert.event_count}
          more={more}
          isCompact={look.isCompact}
        />
      }
      marks={[{ fromMs: Date.parse(alert.first_event_at), toMs: Date.parse(alert.last_event_at) }]}
      score={alert.ai_analysis?.threat_score ?? null}
      people={alert.assignee === null ? NOBODY : <Person name={alert.assignee} />}
      atMs={Date.parse(alert.last_event_at)}
    />
  );
});

interface GroupRowProps extends RowLook, RowActions {
  readonly filters: AlertFilters;
  readonly group: AlertGroup;
  readonly isOpen: boolean;
  readonly stepMs: number;
}

export const GroupRow = memo(function GroupRow({ group, filters, isOpen, stepMs, ...look }: GroupRowProps) {
  const isNameless = group.samples.length === 0;
  const { data: samples } = useQuery({
    ...groupSamplesQuery(filters, group.rule),
    enabled: isNameless && mayPrefetch(),
  });
  const title = groupTitle(isNameless && samples !== undefined ? { ...group, samples } : group);
  return (
    <RowFrame
      {...look}
      severity={group.severity}
      name={`all ${exact(group.count)} alerts: ${title}`}
      isIndented={false}
      title={
        <>
          <span className={`truncate text-sm font-medium ${look.isStruck ? "text-ink3 line-through" : ""}`}>
            {title}
          </span>
          <button
            type="button"
            tabIndex={-1}
            aria-expanded={isOpen}
            aria-label={`${count(group.count, "alert")}, ${isOpen ? "close" : "open"} the group`}
            onClick={(event) => {
              event.stopPropagation();
              look.onToggle?.();
            }}
            className="inline-flex shrink-0 items-center gap-0.5 rounded-full bg-hover py-0.5 pr-1.5 pl-2 text-2xs font-semibold text-ink2 ring-1 ring-line2/60 hover:text-ink"
          >
            {exact(group.count)}
            <Icon name={isOpen ? "chevron-down" : "chevron-right"} size={12} />
          </button>
        </>
      }
      words={
        <Words
          source={group.source}
          rule={group.rule}
          events={group.eventCount}
          more={null}
          isCompact={look.isCompact}
        />
      }
      marks={group.when.map(({ atMs }) => ({ fromMs: atMs, toMs: atMs + stepMs }))}
      score={group.score}
      people={<GroupPeople group={group} />}
      atMs={group.lastMs}
    />
  );
});

function GroupPeople({ group: { assignees, isPartlyUnassigned } }: { group: AlertGroup }) {
  if (assignees.length === 0) return NOBODY;
  if (assignees.length === 1 && !isPartlyUnassigned) return <Person name={assignees[0]!} />;
  const words = `${assignees.join(", ")}${isPartlyUnassigned ? "; some nobody yet" : ""}`;
  return (
    <span
      role="img"
      aria-label={words}
      title={words}
      className="grid size-6 place-items-center rounded-full border border-dashed border-accent/60 text-[10px] font-semibold text-accent"
    >
      {assignees.length}
    </span>
  );
}
