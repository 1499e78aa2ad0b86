import { Link } from "@tanstack/react-router";
import { Sentence } from "../../components/entities/sentence.tsx";
import { clock, clockSeconds, day, duration } from "../../components/time/format.ts";
import { absoluteRange } from "../../components/time/range.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { SEVERITY_TEXT, SeverityBars, severityColor } from "../../components/ui/severity.tsx";
import type { Alert, Event, Severity } from "../../data/client.ts";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../text/domains.ts";
import type { DayCounts } from "./story.ts";

interface EventRowProps {
  readonly event: Event;
  readonly atMs: number;
  /** Its place in the thread; 0: it is not a part of it. */
  readonly number: number;
  readonly isEcho: boolean;
  readonly severity: Severity;
}

export function EventRow({ event, atMs, number, isEcho, severity }: EventRowProps) {
  const domain = domainOf(event.source);
  const isStrong = number > 0 || isEcho;
  return (
    <div className="grid grid-cols-[58px_20px_1fr] items-start gap-x-1.5">
      <time dateTime={event.timestamp} title={`${event.timestamp} (UTC)`} className="mono pt-px text-2xs text-ink3">
        {clockSeconds(atMs)}
      </time>
      {number > 0 ? (
        <span
          className="grid size-[18px] place-items-center rounded-full text-2xs font-bold text-app"
          style={{ background: severityColor(severity) }}
        >
          {number}
        </span>
      ) : isEcho ? (
        <span
          className="grid size-[18px] place-items-center rounded-full"
          style={{ boxShadow: `inset 0 0 0 1.5px ${severityColor(severity)}` }}
        >
          <Icon
            name={DOMAIN_ICON[domain]}
            size={10}
            label={`${DOMAIN_WORD[domain]}, ${event.severity}`}
            className="text-ink"
          />
        </span>
      ) : (
        <Icon
          name={DOMAIN_ICON[domain]}
          size={14}
          label={`${DOMAIN_WORD[domain]}, ${event.severity}`}
          className={`mt-0.5 ${event.severity === "info" ? "text-ink3" : SEVERITY_TEXT[event.severity]}`}
        />
      )}
      <p className={`min-w-0 text-xs/5 wrap-anywhere ${isStrong ? "font-medium text-ink" : "text-ink2"}`}>
        <Sentence event={event} />
      </p>
    </div>
  );
}

interface AlertRowProps {
  readonly alert: Alert;
  readonly atMs: number;
  readonly isChosen: boolean;
  /** Among days, where it has the whole width and needs its time. */
  readonly isOfDay: boolean;
  readonly onChoose: () => void;
}

export function AlertRow({ alert, atMs, isChosen, isOfDay, onChoose }: AlertRowProps) {
  return (
    <div
      className={`relative my-1 rounded-lg border-l-[3px] bg-raised py-2 pr-9 pl-3 ${isOfDay ? "" : "ml-[84px]"} ${isChosen ? "ring-1 ring-line2" : ""}`}
      style={{ borderColor: severityColor(alert.severity) }}
    >
      <p
        className={`flex items-center gap-1.5 text-2xs font-semibold tracking-wide uppercase ${SEVERITY_TEXT[alert.severity]}`}
      >
        <SeverityBars severity={alert.severity} size={11} />
        {alert.severity} alert
        {isOfDay && (
          <time dateTime={alert.last_event_at} className="ml-auto font-normal tracking-normal text-ink3 normal-case">
            {clock(atMs)}
          </time>
        )}
      </p>
      <button
        type="button"
        aria-pressed={isChosen}
        title="Show how it came about"
        onClick={onChoose}
        className="block w-full text-left text-xs/5 font-medium wrap-anywhere hover:underline"
      >
        {alert.title}
      </button>
      <Link
        to="/alerts"
        search={{ view: "all", alert: alert.id } as never}
        aria-label={`Open the alert ${alert.title}`}
        title="Open the alert"
        className="absolute right-1.5 bottom-1.5 grid size-7 place-items-center rounded-md text-ink3 hover:bg-hover hover:text-ink"
      >
        <Icon name="arrow-right" size={14} />
      </Link>
    </div>
  );
}

export function GapRow({ lengthMs }: { lengthMs: number }) {
  return (
    <div className="flex items-center gap-2 py-1 pl-[86px] text-2xs text-ink3">
      <span className="h-px flex-1 bg-line" />
      {duration(lengthMs)} later
      <span className="h-px flex-1 bg-line" />
    </div>
  );
}

const DAY_MS = 86_400_000;

export function DayRow({ dayMs, counts }: { dayMs: number; counts: DayCounts }) {
  return (
    <h3 className="flex items-baseline gap-2 pt-3 pb-1 text-xs font-semibold text-ink">
      {day(dayMs)}
      {counts.length > 0 && (
        <Link
          to="/alerts"
          search={{ view: "all", time: "overlap", ...absoluteRange(dayMs, dayMs + DAY_MS) } as never}
          className="ml-auto text-2xs font-normal text-ink3 hover:text-ink hover:underline"
        >
          {counts.map(({ severity, count }) => `${count} ${severity}`).join(", ")}
        </Link>
      )}
    </h3>
  );
}
