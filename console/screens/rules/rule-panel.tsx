import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { useKeys } from "../../app/keys.ts";
import { useNow } from "../../components/time/use-range.ts";
import { Button, IconButton } from "../../components/ui/button.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Menu } from "../../components/ui/menu.tsx";
import { SeverityLabel } from "../../components/ui/severity.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { Switch } from "../../components/ui/switch.tsx";
import type { Rule } from "../../data/client.ts";
import { ruleByNameQuery, ruleQuery, simulateRule, testRule } from "../../data/rules.ts";
import { useMay } from "../../data/session.ts";
import { dedupWords, descriptionParts, firingWords } from "../../text/rules.ts";
import { DeleteSheet } from "./delete-sheet.tsx";
import { Exceptions } from "./exceptions.tsx";
import { Figures, Footnotes } from "./rule-facts.tsx";
import { copyOf, inputOf } from "./rule-input.ts";
import { isRuleName } from "./rule-search.ts";
import { RuleTests } from "./rule-tests.tsx";
import { sourceIcon, sourceWord } from "./source-words.ts";
import { testNames } from "./test-words.ts";
import { SimulationResult } from "./try-it.tsx";
import { WhatItLooksFor } from "./what-it-looks-for.tsx";

interface RulePanelProps {
  /** The name or the id of the rule. */
  readonly reference: string;
  /** As the list knows it, until the rule itself is read. */
  readonly listed: Rule | undefined;
  readonly switchingId: string | undefined;
  readonly onSwitch: (rule: Rule, isOn: boolean) => void;
  readonly onEdit: (edit: string) => void;
  readonly onClose: () => void;
}

export function RulePanel({ reference, listed, switchingId, onSwitch, onEdit, onClose }: RulePanelProps) {
  // A link may lead to a rule that the list does not show.
  const isName = isRuleName(reference);
  const found = useQuery({ ...ruleByNameQuery(reference), enabled: isName && listed === undefined });
  const id = listed?.id ?? (isName ? found.data?.id : reference);
  const read = useQuery({ ...ruleQuery(id ?? ""), enabled: id !== undefined });
  const rule = read.data?.rule ?? listed ?? found.data ?? undefined;
  const error = found.error ?? read.error;
  return (
    <aside
      aria-label="Rule"
      className="flex min-h-0 flex-col border-l border-line bg-panel max-lg:fixed max-lg:inset-0 max-lg:z-30 max-lg:border-l-0"
    >
      {rule !== undefined ? (
        <Body
          key={rule.id}
          rule={rule}
          warnings={read.data?.warnings ?? []}
          isSwitching={switchingId === rule.id}
          onSwitch={(isOn) => onSwitch(rule, isOn)}
          onEdit={onEdit}
          onClose={onClose}
        />
      ) : error !== null || found.data === null ? (
        <div className="p-5 text-center">
          {error === null ? (
            <Empty title={`There is no rule ${reference}`}>It may have been deleted.</Empty>
          ) : (
            <Failure error={error} onRetry={() => void (id === undefined ? found : read).refetch()} />
          )}
          <Button onClick={onClose}>Close</Button>
        </div>
      ) : (
        <div className="p-5">
          <Skeleton className="h-96" />
        </div>
      )}
    </aside>
  );
}

interface BodyProps {
  readonly rule: Rule;
  readonly warnings: readonly string[];
  readonly isSwitching: boolean;
  readonly onSwitch: (isOn: boolean) => void;
  readonly onEdit: (edit: string) => void;
  readonly onClose: () => void;
}

function Body({ rule, warnings, isSwitching, onSwitch, onEdit, onClose }: BodyProps) {
  const nowMs = useNow();
  const mayWrite = useMay("rules:write");
  const mayTry = useMay("events:read");
  const [isDeleting, setDeleting] = useState(false);
  const { what, todo } = descriptionParts(rule.description);
  const attempt = useMutation({ mutationFn: () => simulateRule(inputOf(rule)) });
  const tests = useMutation({ mutationFn: (_version: string) => testRule(rule.id) });
  const runTests = () => tests.mutate(rule.updated_at);
  const names = testNames(rule.tests);
  const edit = () => onEdit(rule.builtin ? copyOf(rule.id) : rule.id);
  const lacks = mayWrite ? undefined : "Your key lacks the scope rules:write.";
  useKeys("rules", {
    simulate: () => mayTry && !attempt.isPending && attempt.mutate(),
    edit: () => mayWrite && edit(),
    test: () => names.length > 0 && !tests.isPending && runTests(),
  });
  return (
    <>
      <header className="border-b border-line px-5 pt-3 pb-4">
        <div className="flex items-center gap-2">
          <SeverityLabel severity={rule.severity} />
          <span className="flex items-center gap-1.5 text-xs text-ink2">
            <Icon name={sourceIcon(rule.source)} size={13} className="text-ink3" />
            {sourceWord(rule.source)}
          </span>
          <span className="text-xs text-ink3">{rule.builtin ? "built in" : "your own"}</span>
          <div className="ml-auto flex items-center">
            <Menu
              trigger={<IconButton icon="ellipsis" label="What to do with the rule" />}
              items={[
                {
                  label: "Make a copy",
                  icon: "copy",
                  disabledBecause: lacks,
                  onChoose: () => onEdit(copyOf(rule.id)),
                },
                {
                  label: "Delete",
                  icon: "trash-2",
                  disabledBecause: rule.builtin ? "A built-in rule can only be switched off." : lacks,
                  onChoose: () => setDeleting(true),
                },
              ]}
            />
            <IconButton icon="x" label="Close" onClick={onClose} />
          </div>
        </div>
        <h2 className="mono mt-1 text-[15px] font-semibold break-words">{rule.name}</h2>
        <div className="mt-3 flex flex-wrap items-center gap-2">
          <Button
            look={rule.builtin ? "plain" : "primary"}
            icon={rule.builtin ? "copy" : "pencil"}
            hint="E"
            disabled={!mayWrite}
            title={lacks}
            onClick={edit}
          >
            {rule.builtin ? "Copy and change" : "Edit"}
          </Button>
          <Button
            icon="play"
            hint="T"
            disabled={!mayTry || attempt.isPending}
            title={mayTry ? undefined : "Your key lacks the scope events:read."}
            onClick={() => attempt.mutate()}
          >
            Try it on the last 7 days
          </Button>
          <label className="ml-auto flex items-center gap-2 text-sm text-ink2">
            {rule.enabled ? "On" : "Off"}
            <Switch
              label={`${rule.name} is on`}
              isOn={rule.enabled}
              isPending={isSwitching}
              disabledBecause={lacks}
              onChange={onSwitch}
            />
          </label>
        </div>
      </header>
      <div
        className="min-h-0 flex-1 space-y-6 overflow-y-auto px-5 py-5"
        tabIndex={0}
        aria-label="About the rule"
        role="region"
      >
        {warnings.length > 0 && (
          <ul className="space-y-1 rounded-lg border border-line2 bg-raised px-4 py-3 text-sm">
            {warnings.map((warning) => (
              <li key={warning} className="flex gap-2">
                <Icon name="triangle-alert" size={15} className="mt-0.5 text-ink3" />
                {warning.charAt(0).toUpperCase() + warning.slice(1)}.
              </li>
            ))}
          </ul>
        )}
        <p className="text-sm break-words text-ink2">{what}</p>
        {todo.length > 0 && (
          <div className="space-y-2 rounded-lg border border-accent/35 bg-accent-soft px-4 py-3 text-sm">
            {todo.map((paragraph, index) => (
              <p key={paragraph} className="break-words">
                {index === 0 && <strong className="text-accent">Do now. </strong>}
                {paragraph}
              </p>
            ))}
          </div>
        )}
        <Figures rule={rule} nowMs={nowMs} />
        {(attempt.isPending || attempt.data !== undefined || attempt.error !== null) && (
          <TryPart title="On the last 7 days" key={String(attempt.isPending)}>
            {attempt.isPending ? (
              <Skeleton className="h-48" />
            ) : attempt.data !== undefined ? (
              <SimulationResult result={attempt.data} severity={rule.severity} />
            ) : (
              <Failure error={attempt.error!} onRetry={() => attempt.mutate()} />
            )}
          </TryPart>
        )}
        <section>
          <SectionHeading>What it looks for</SectionHeading>
          <WhatItLooksFor rule={rule} />
        </section>
        <section>
          <SectionHeading>When it raises an alert</SectionHeading>
          <div className="space-y-1.5 text-sm text-ink2">
            <p>{firingWords(rule)}</p>
            <p>{dedupWords(rule)}</p>
            <p>{notifyWords(rule)}</p>
          </div>
        </section>
        {rule.tests === undefined ? (
          <Skeleton className="h-24" />
        ) : (
          <RuleTests
            names={names}
            result={tests.data}
            error={tests.error}
            isPending={tests.isPending}
            isStale={tests.variables !== rule.updated_at}
            onRun={runTests}
          />
        )}
        <section>
          <SectionHeading>Exceptions</SectionHeading>
          <Exceptions rule={rule} nowMs={nowMs} />
        </section>
        <Footnotes rule={rule} nowMs={nowMs} />
      </div>
      {isDeleting && <DeleteSheet rule={rule} onClose={() => setDeleting(false)} onDeleted={onClose} />}
    </>
  );
}

/** Comes into view when it appears: it was asked for. */
function TryPart({ title, children }: { title: string; children: ReactNode }) {
  const [part, setPart] = useState<HTMLElement | null>(null);
  useEffect(() => {
    void part?.scrollIntoView({ block: "nearest" });
  }, [part]);
  return (
    <section ref={setPart} className="rounded-xl border border-line bg-app p-4">
      <SectionHeading>{title}</SectionHeading>
      {children}
    </section>
  );
}

function notifyWords(rule: Rule): string {
  if (rule.builtin) return "Tells the channels that the service's settings name for its severity.";
  const channels = rule.actions.flatMap(({ alert }) => alert.channels);
  return channels.length === 0 ? "Tells nobody; the alert waits in the queue." : `Tells ${channels.join(", ")}.`;
}
