import { Link } from "@tanstack/react-router";
import { age, full } from "../../components/time/format.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { SeverityBars, severityColor } from "../../components/ui/severity.tsx";
import { Switch } from "../../components/ui/switch.tsx";
import type { Rule } from "../../data/client.ts";
import { count, exact, percent } from "../../text/numbers.ts";
import { descriptionParts } from "../../text/rules.ts";
import { sourceIcon, sourceWord } from "./source-words.ts";

export const COLUMNS =
  "grid-cols-[20px_minmax(0,1fr)_100px_132px_76px_64px_40px] max-xl:data-[narrow=true]:grid-cols-[20px_minmax(0,1fr)_112px_40px] data-[narrow=true]:grid-cols-[20px_minmax(0,1fr)_132px_64px_40px] max-md:grid-cols-[20px_minmax(0,1fr)_44px_40px] max-md:data-[narrow=true]:grid-cols-[20px_minmax(0,1fr)_44px_40px]";

interface RuleRowProps {
  readonly rule: Rule;
  readonly isOpen: boolean;
  readonly isNarrow: boolean;
  readonly isCompact: boolean;
  /** Alerts of the noisiest rule, for the length of the bar. */
  readonly alertsMost: number;
  readonly nowMs: number;
  readonly mayWrite: boolean;
  readonly isSwitching: boolean;
  readonly onOpen: () => void;
  readonly onSwitch: (isOn: boolean) => void;
}

/** What the row holds; its place is the list's matter. */
export function RuleRow(props: RuleRowProps) {
  const { rule, isNarrow, isCompact, nowMs, onOpen } = props;
  const { stats } = rule;
  return (
    <>
      <span role="cell">
        <SeverityBars severity={rule.severity} />
      </span>
      <span role="cell" className="min-w-0">
        <button
          type="button"
          aria-expanded={props.isOpen}
          onClick={onOpen}
          className={`mono block max-w-full truncate text-left text-sm after:absolute after:inset-0 ${rule.enabled ? "text-ink" : "text-ink3"}`}
        >
          {rule.name}
          {!rule.builtin && (
            <span className="ml-2 rounded bg-accent-soft px-1.5 py-0.5 font-sans text-2xs font-medium text-accent">
              own
            </span>
          )}
          {rule.exceptions.length > 0 && (
            <span className="ml-2 font-sans text-2xs text-ink3">{count(rule.exceptions.length, "exception")}</span>
          )}
        </button>
        {!isCompact && (
          <span className="block truncate text-xs text-ink3">{descriptionParts(rule.description).what}</span>
        )}
      </span>
      {!isNarrow && (
        <span role="cell" className="flex min-w-0 items-center gap-1.5 text-xs text-ink2 max-md:hidden">
          <Icon name={sourceIcon(rule.source)} size={13} className="text-ink3" />
          <span className="truncate">{sourceWord(rule.source)}</span>
        </span>
      )}
      <span role="cell" className="min-w-0">
        <AlertsCell {...props} />
      </span>
      {!isNarrow && (
        <span role="cell" className="text-right text-xs text-ink2 max-md:hidden">
          {stats.false_positive_share === null ? (
            <span className="text-ink3" title="No alert of the last 90 days was resolved">
              –
            </span>
          ) : (
            percent(stats.false_positive_share)
          )}
        </span>
      )}
      <span
        role="cell"
        className={`relative z-1 text-right text-xs text-ink2 max-md:hidden ${isNarrow ? "max-xl:hidden" : ""}`}
        title={stats.last_match === null ? "No event has matched yet" : full(stats.last_match)}
      >
        {stats.last_match === null ? <span className="text-ink3">never</span> : age(stats.last_match, nowMs)}
      </span>
      <span role="cell" className="relative z-1 justify-self-end">
        <Switch
          label={rule.name}
          isOn={rule.enabled}
          isPending={props.isSwitching}
          disabledBecause={props.mayWrite ? undefined : "Your key lacks the scope rules:write."}
          onChange={props.onSwitch}
        />
      </span>
    </>
  );
}

function AlertsCell({ rule, alertsMost }: RuleRowProps) {
  const alerts = rule.stats.alerts_7d;
  if (alerts === 0) return <span className="block pr-[76px] text-right text-xs text-ink3 max-md:pr-0">0</span>;
  return (
    <Link
      to="/alerts"
      search={{ rule_name: rule.name, range: "7d" }}
      title={`Show the ${count(alerts, "alert")} of the last 7 days`}
      className="relative z-1 flex h-7 items-center justify-end gap-2 text-xs font-medium text-ink hover:text-accent"
    >
      <span className="underline decoration-line2 decoration-dotted underline-offset-3">{exact(alerts)}</span>
      <svg width={68} height={8} aria-hidden className="shrink-0 max-md:hidden">
        <rect width={68} height={8} rx={2} fill="var(--line)" opacity={0.6} />
        <rect width={Math.max(3, (68 * alerts) / alertsMost)} height={8} rx={2} fill={severityColor(rule.severity)} />
      </svg>
    </Link>
  );
}
