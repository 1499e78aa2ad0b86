import { Link } from "@tanstack/react-router";
import { ago, full } from "../../components/time/format.ts";
import type { Rule } from "../../data/client.ts";
import { count, exact, percent } from "../../text/numbers.ts";

// The numbers of a rule, and what stands under it.

export function Figures({ rule, nowMs }: { rule: Rule; nowMs: number }) {
  const { stats } = rule;
  return (
    <dl className="grid grid-cols-4 gap-px overflow-hidden rounded-lg border border-line bg-line max-md:grid-cols-2 [&>div]:bg-panel [&>div]:px-3 [&>div]:py-2 [&_dd]:text-base [&_dd]:font-semibold [&_dt]:text-2xs [&_dt]:text-ink3">
      <div>
        <dt>Alerts, 7 days</dt>
        <dd>
          <Link
            to="/alerts"
            search={{ rule_name: rule.name, range: "7d" }}
            title={`Show the ${count(stats.alerts_7d, "alert")}`}
            className="underline decoration-line2 decoration-dotted underline-offset-4 hover:text-accent"
          >
            {exact(stats.alerts_7d)}
          </Link>
        </dd>
      </div>
      <div>
        <dt>False positives</dt>
        <dd>{stats.false_positive_share === null ? "–" : percent(stats.false_positive_share)}</dd>
      </div>
      <div>
        <dt>Matches, 7 days</dt>
        <dd>{exact(stats.matches_7d)}</dd>
      </div>
      <div title={stats.last_match === null ? undefined : full(stats.last_match)}>
        <dt>Last match</dt>
        <dd>{stats.last_match === null ? "never" : ago(stats.last_match, nowMs)}</dd>
      </div>
    </dl>
  );
}

/** Only these are links; a reference is text from outside. */
const isWebAddress = (text: string) => /^https?:\/\/[^\s]+$/.test(text);

export function Footnotes({ rule, nowMs }: { rule: Rule; nowMs: number }) {
  return (
    <section className="space-y-2 border-t border-line pt-4 text-xs text-ink3">
      {rule.tags.length > 0 && (
        <p className="flex flex-wrap gap-1.5">
          {rule.tags.map((tag) => (
            <span key={tag} className="mono rounded bg-hover px-1.5 py-0.5 text-2xs text-ink2">
              {tag}
            </span>
          ))}
        </p>
      )}
      {rule.references.map((reference) => (
        <p key={reference} className="break-all">
          {isWebAddress(reference) ? (
            <a
              href={reference}
              target="_blank"
              rel="noreferrer noopener"
              className="text-ink2 underline hover:text-accent"
            >
              {reference}
            </a>
          ) : (
            reference
          )}
        </p>
      ))}
      {rule.origin !== null && (
        <p>Imported from the Sigma rule {rule.origin.sigma.id ?? rule.origin.sigma.name ?? "without a name"}.</p>
      )}
      <p>{rule.builtin ? "Comes with the service." : `Last changed ${ago(rule.updated_at, nowMs)}.`}</p>
    </section>
  );
}
