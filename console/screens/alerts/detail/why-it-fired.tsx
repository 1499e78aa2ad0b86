import { Suspense, useState } from "react";
import { Sentence } from "../../../components/entities/sentence.tsx";
import { clockSeconds, day, duration, full } from "../../../components/time/format.ts";
import { SectionHeading } from "../../../components/ui/heading.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { severityColor } from "../../../components/ui/severity.tsx";
import type { AlertDetail, Severity } from "../../../data/client.ts";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../../text/domains.ts";
import { count } from "../../../text/numbers.ts";
import { fieldWords, whyOf, type WhyStep } from "./why.ts";
import { lazyPart } from "../../../components/ui/lazy-part.ts";

const AlertEvents = lazyPart(() => import("./alert-events.tsx"));

const FIELDS_SHOWN_MAX = 4;

export function WhyItFired({ alert }: { alert: AlertDetail }) {
  const { lead, steps, closing } = whyOf(alert);
  const [isListing, setListing] = useState(false);
  const hasDays = day(alert.first_event_at) !== day(alert.last_event_at);
  return (
    <section>
      <SectionHeading
        right={
          alert.event_count > 0 && (
            <button
              type="button"
              onClick={() => setListing(true)}
              className="text-xs font-medium text-accent hover:underline"
            >
              {count(alert.event_count, "event")}
            </button>
          )
        }
      >
        Why it fired
      </SectionHeading>
      <div className="overflow-hidden rounded-lg border border-line">
        {lead !== null && (
          <p className="border-b border-line bg-raised px-3 py-2 text-sm text-ink2 last:border-0">
            <span className="text-lg font-semibold text-ink">{lead.figure}</span> {lead.words}
          </p>
        )}
        <ol>
          {steps.map((step) => (
            <Step key={step.event.id} step={step} severity={alert.severity} hasDays={hasDays} />
          ))}
        </ol>
        {closing !== null && <p className="bg-app px-3 py-1.5 text-2xs text-ink3">{closing}</p>}
        {steps.length === 0 && lead === null && closing === null && (
          <p className="px-3 py-2 text-sm text-ink3">The events of this alert are no longer kept.</p>
        )}
      </div>
      {alert.match?.rule_as === "current" && (
        <p className="mt-1 text-2xs text-ink3">Explained by the rule as it is today.</p>
      )}
      <Suspense fallback={null}>
        {isListing && <AlertEvents alert={alert} onClose={() => setListing(false)} />}
      </Suspense>
    </section>
  );
}

interface StepProps {
  readonly step: WhyStep;
  readonly severity: Severity;
  /** The alert goes on for days: each event says its own. */
  readonly hasDays: boolean;
}

function Step({ step, severity, hasDays }: StepProps) {
  const { event, number, name, more, laterMs } = step;
  // The icon says the source, and what an event lacks explains little.
  const fields = step.fields.filter(({ field, value }) => field !== "source" && value !== null);
  const domain = domainOf(event.source);
  const shown = fields.slice(0, FIELDS_SHOWN_MAX);
  return (
    <li className="grid grid-cols-[24px_minmax(0,1fr)_auto] items-center gap-x-2.5 border-b border-line bg-raised px-3 py-2 last:border-0">
      {number === null ? (
        <Icon name={DOMAIN_ICON[domain]} size={15} label={DOMAIN_WORD[domain]} className="mx-auto text-ink3" />
      ) : (
        <span
          className="grid size-5 place-items-center rounded-full text-2xs font-bold text-app"
          style={{ background: severityColor(severity) }}
        >
          {number}
        </span>
      )}
      <div className="min-w-0">
        <p className="text-sm wrap-anywhere text-ink2">
          <Sentence event={event} />
          {more > 0 && <span className="text-ink3"> and {more} more</span>}
        </p>
        <p className="mt-0.5 flex flex-wrap items-center gap-x-1.5 gap-y-1 text-2xs text-ink3">
          {number !== null && <Icon name={DOMAIN_ICON[domain]} size={11} label={DOMAIN_WORD[domain]} />}
          {name}
          {shown.map((field) => {
            const words = fieldWords(field);
            return (
              <code
                key={words}
                title={`${field.field} ${words}`}
                className="mono max-w-full truncate rounded bg-hover px-1 text-ink2"
              >
                {words}
              </code>
            );
          })}
          {fields.length > shown.length && <span>+{fields.length - shown.length}</span>}
        </p>
      </div>
      <div className="text-right text-2xs text-ink3">
        <time
          dateTime={event.timestamp}
          title={`${full(event.timestamp)} (${event.timestamp})`}
          className="mono text-ink2"
        >
          {clockSeconds(event.timestamp)}
        </time>
        {hasDays && <p>{day(event.timestamp)}</p>}
        {laterMs !== null && <p>{duration(laterMs)} later</p>}
      </div>
    </li>
  );
}
