import { Link } from "@tanstack/react-router";
import { keyLabel, KEYS } from "../../../app/keys.ts";
import { duration, full } from "../../../components/time/format.ts";
import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Person } from "../../../components/ui/marks.tsx";
import { Menu } from "../../../components/ui/menu.tsx";
import { SeverityLabel } from "../../../components/ui/severity.tsx";
import type { AlertDetail } from "../../../data/client.ts";
import { count } from "../../../text/numbers.ts";
import { Dot } from "../list/alert-row.tsx";
import type { AlertCommands } from "../work/commands.ts";
import { StatusSteps } from "./status-steps.tsx";
import { RESOLUTION_WORDS } from "./timeline-words.ts";

interface AlertHeadProps {
  readonly alert: AlertDetail;
  readonly commands: AlertCommands;
  /** On a phone the alert covers the queue. */
  readonly onBack: (() => void) | undefined;
  readonly refusal: string | undefined;
  readonly exceptionRefusal: string | undefined;
}

const hint = (name: keyof (typeof KEYS)["alert"]) => keyLabel(KEYS.alert[name].keys[0]);

export function AlertHead({ alert, commands, onBack, refusal, exceptionRefusal }: AlertHeadProps) {
  const [firstMs, lastMs] = [Date.parse(alert.first_event_at), Date.parse(alert.last_event_at)];
  const disabled = { disabled: refusal !== undefined, title: refusal };
  return (
    <header className="sticky top-0 z-10 border-b border-line bg-panel/95 px-5 pt-4 pb-3 backdrop-blur max-md:px-4">
      <div className="flex items-center gap-2.5">
        {onBack !== undefined && (
          <IconButton icon="chevron-left" label="Back to the queue" className="-ml-2" onClick={onBack} />
        )}
        <SeverityLabel severity={alert.severity} />
        <StatusSteps status={alert.status} />
        <span className="ml-auto flex items-center">
          <IconButton icon="copy" label={`Copy a link (${hint("copyLink")})`} size={14} onClick={commands.copyLink} />
          <Menu
            trigger={<IconButton icon="ellipsis" label="More" />}
            items={[
              {
                label: "Assign",
                icon: "user-round",
                hint: hint("assign"),
                disabledBecause: refusal,
                onChoose: commands.assign,
              },
              { label: "Tags", icon: "bookmark", disabledBecause: refusal, onChoose: commands.tag },
              { label: "Score it again", icon: "bot", disabledBecause: refusal, onChoose: commands.analyse },
              "line",
              { label: "Show on the time axis", icon: "activity", hint: hint("onAxis"), onChoose: commands.onAxis },
              { label: "Open the rule", icon: "shield", onChoose: commands.openRule },
              { label: "Only alerts of this rule", icon: "list-filter", onChoose: commands.filterRule },
            ]}
          />
        </span>
      </div>
      <h2 className="mt-1.5 text-lg/[1.3] font-semibold tracking-tight text-balance wrap-anywhere">{alert.title}</h2>
      <p className="mt-1 flex flex-wrap items-center gap-x-2 text-xs text-ink3">
        <Icon name="clock-3" size={12} />
        <time dateTime={alert.first_event_at} title={`${alert.first_event_at} (UTC)`}>
          {full(firstMs)}
        </time>
        {lastMs > firstMs && <span>for {duration(lastMs - firstMs)}</span>}
        <Dot />
        <span>{count(alert.event_count, "event")}</span>
        <Dot />
        <Link
          to="/rules"
          search={{ rule: alert.rule.id } as never}
          className="mono min-w-0 text-ink2 underline decoration-line2 decoration-dotted underline-offset-3 wrap-anywhere hover:decoration-accent"
        >
          {alert.rule_name}
        </Link>
      </p>
      {alert.tags.length > 0 && (
        <p className="mt-1.5 flex flex-wrap gap-1">
          {alert.tags.map((tag) => (
            <button
              key={tag}
              type="button"
              title="Only alerts with this tag"
              onClick={() => commands.filterTag(tag)}
              className="rounded bg-hover px-1.5 py-0.5 text-2xs text-ink2 hover:text-ink"
            >
              {tag}
            </button>
          ))}
        </p>
      )}
      <div className="mt-3 flex items-center gap-2 max-md:flex-wrap">
        {alert.status === "open" && (
          <Button look="primary" hint={hint("acknowledge")} {...disabled} onClick={commands.acknowledge}>
            Acknowledge
          </Button>
        )}
        {alert.status !== "resolved" ? (
          <Button
            look={alert.status === "open" ? "plain" : "primary"}
            hint={hint("resolve")}
            {...disabled}
            onClick={commands.resolve}
          >
            Resolve
          </Button>
        ) : (
          <Button icon="undo-2" {...disabled} onClick={commands.reopen}>
            Reopen
          </Button>
        )}
        {alert.status !== "resolved" && (
          <Button
            hint={hint("exception")}
            disabled={exceptionRefusal !== undefined}
            title={exceptionRefusal}
            onClick={commands.exception}
          >
            Make an exception
          </Button>
        )}
        {alert.status === "resolved" && alert.resolution !== null && (
          <span className="text-xs text-ink2">It was {RESOLUTION_WORDS[alert.resolution]}</span>
        )}
        <button
          type="button"
          {...disabled}
          onClick={commands.assign}
          className="-mr-2 ml-auto flex h-8 min-w-0 items-center gap-2 rounded-md px-2 text-xs whitespace-nowrap text-ink2 hover:bg-hover max-md:ml-0"
        >
          {alert.assignee === null ? (
            <>
              <Icon name="user-round" size={14} /> Nobody yet
            </>
          ) : (
            <>
              <Person name={alert.assignee} /> <span className="min-w-0 truncate">{alert.assignee.split("@")[0]}</span>
            </>
          )}
        </button>
      </div>
    </header>
  );
}
