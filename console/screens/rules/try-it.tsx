import { Link } from "@tanstack/react-router";
import { Sentence } from "../../components/entities/sentence.tsx";
import { clock, day } from "../../components/time/format.ts";
import { severityColor } from "../../components/ui/severity.tsx";
import type { Severity } from "../../data/client.ts";
import type { Simulation } from "../../data/rules.ts";
import { count, exact } from "../../text/numbers.ts";

// What a rule would have done in the last seven days.

const ESTIMATES: Readonly<Record<Simulation["false_positive_estimate"], string>> = {
  low: "few of them are likely to be false",
  medium: "some of them are likely to be false",
  high: "many of them are likely to be false",
};

const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", timeZone: "UTC" });

export function SimulationResult({ result, severity }: { result: Simulation; severity: Severity }) {
  const perDay = result.estimated_alerts_per_day;
  return (
    <div className="space-y-4">
      <div role="status">
        <p className="text-base font-semibold">
          {result.alerts === 0
            ? "This would have made no alert last week."
            : `This would have made ${count(result.alerts, "alert")} last week.`}
        </p>
        <p className="mt-0.5 text-sm text-ink2">
          {result.matches === 0 ? "No event matched" : `${count(result.matches, "event")} matched`}
          {result.alerts > 0 &&
            `; ${perDay < 1 ? "less than one alert" : `about ${exact(Math.round(perDay))} ${Math.round(perDay) === 1 ? "alert" : "alerts"}`} a day, and ${ESTIMATES[result.false_positive_estimate]}`}
          .
        </p>
      </div>
      <DayBars days={result.by_day} severity={severity} />
      {result.sample_events.length > 0 && (
        <section aria-label="Events that matched" className="space-y-1">
          <h3 className="text-xs font-semibold">
            {result.matches > result.sample_events.length
              ? `The newest ${result.sample_events.length} of them`
              : "What matched"}
          </h3>
          <ul className="divide-y divide-line rounded-lg border border-line bg-panel">
            {result.sample_events.map((event) => (
              <li key={event.id} className="flex gap-3 px-3 py-1.5 text-sm">
                <Link
                  to="/events"
                  search={{ event: event.id, range: "7d" }}
                  title="Show the event"
                  className="mono shrink-0 pt-px text-2xs text-ink3 hover:text-accent"
                >
                  {day(event.timestamp).slice(0, 3)} {clock(event.timestamp)}
                </Link>
                <span className="words min-w-0 break-words text-ink2">
                  <Sentence event={event} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

const BAR_HEIGHT = 64;

/** Alerts of each UTC day as bars; the matching events under them. */
function DayBars({ days, severity }: { days: Simulation["by_day"]; severity: Severity }) {
  const most = Math.max(1, ...days.map(({ alerts }) => alerts));
  const hasAlerts = days.some(({ alerts }) => alerts > 0);
  return (
    <table className="w-full table-fixed text-center [&_th]:w-11 [&_th]:text-left [&_th]:align-bottom [&_th]:font-normal text-2xs text-ink3">
      <caption className="sr-only">Alerts and matching events of each day (UTC)</caption>
      <tbody>
        <tr>
          <th scope="row">Alerts</th>
          {days.map(({ day: date, alerts }) => (
            <td key={date} className="px-0.5 align-bottom" style={{ height: (hasAlerts ? BAR_HEIGHT : 0) + 18 }}>
              <span className={`block ${alerts === 0 ? "text-ink3" : "font-medium text-ink"}`}>{exact(alerts)}</span>
              <span
                aria-hidden
                className="block rounded-t-sm"
                style={{
                  height: alerts === 0 ? 1 : Math.max(3, (alerts / most) * BAR_HEIGHT),
                  background: alerts === 0 ? "var(--line2)" : severityColor(severity),
                }}
              />
            </td>
          ))}
        </tr>
        <tr className="border-t border-line2">
          <th scope="row">
            <span className="sr-only">Day</span>
          </th>
          {days.map(({ day: date }) => (
            <td key={date} className="pt-1 align-top leading-tight">
              {weekday.format(new Date(`${date}T00:00:00Z`))}
            </td>
          ))}
        </tr>
        <tr>
          <th scope="row">Events</th>
          {days.map(({ day: date, matches }) => (
            <td key={date} title={`${exact(matches)} matching events`}>
              {exact(matches)}
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );
}
