import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { Check, SelectField, TextField } from "../../../components/ui/fields.tsx";
import type { AlertDetail, Schemas } from "../../../data/client.ts";
import { useMay } from "../../../data/session.ts";
import { ruleQuery, weekSimulationQuery } from "../../../data/simulation.ts";
import { sentenceText } from "../../../text/sentences.ts";
import { shortField } from "../detail/why.ts";
import { choicesOf, silencedWords, toConditions, type Candidate } from "./exception.ts";
import { failureWords } from "../../../text/failure-words.ts";

type Exception = Pick<Schemas["ExceptionOfAlert"], "conditions" | "reason"> & {
  /** Null: for good. */
  readonly days: number | null;
};

export type { Exception as DraftException };

interface ExceptionFormProps {
  readonly alert: AlertDetail;
  /** Undefined: no condition is chosen. */
  readonly onChange: (exception: Exception | undefined) => void;
}

const EXPIRIES = [
  { value: "1", label: "for a day" },
  { value: "7", label: "for a week" },
  { value: "30", label: "for 30 days" },
  { value: "90", label: "for 90 days" },
  { value: "365", label: "for a year" },
  { value: "never", label: "until somebody removes it" },
];
/** A simulation reads a week of events: it starts when the choice rests. */
const REST_MS = 600;

const likelyOf = (candidates: readonly Candidate[]) =>
  new Set(candidates.filter(({ isLikely }) => isLikely).map(({ field }) => field));

export function ExceptionForm({ alert, onChange }: ExceptionFormProps) {
  const choices = useMemo(() => choicesOf(alert), [alert]);
  const [which, setWhich] = useState(0);
  const candidates = useMemo(() => choices[which]?.candidates ?? [], [choices, which]);
  const [chosen, setChosen] = useState(() => likelyOf(candidates));
  const [days, setDays] = useState("30");
  const [reason, setReason] = useState("");
  const exception = useMemo((): Exception | undefined => {
    const conditions = toConditions(candidates.filter(({ field }) => chosen.has(field)));
    if (conditions.length === 0) return undefined;
    return {
      conditions: conditions as Exception["conditions"],
      days: days === "never" ? null : Number(days),
      ...(reason.trim() !== "" && { reason: reason.trim() }),
    };
  }, [candidates, chosen, days, reason]);
  useEffect(() => onChange(exception), [exception, onChange]);
  if (candidates.length === 0) {
    return (
      <p className="text-xs text-ink2">
        The events of this alert have no value in common. Make the exception on the rule&apos;s own page.
      </p>
    );
  }
  return (
    <div className="space-y-3">
      {choices.length > 1 && (
        <SelectField
          label="The events have nothing in common. Ignore those like"
          value={String(which)}
          onChange={(value) => {
            setWhich(Number(value));
            setChosen(likelyOf(choices[Number(value)]!.candidates));
          }}
          options={choices.map(({ event }, i) => ({
            value: String(i),
            label: event === null ? "all" : sentenceText(event),
          }))}
        />
      )}
      <fieldset>
        <legend className="mb-1 text-xs font-medium text-ink2">Events are ignored where all of these hold</legend>
        <ul className="space-y-1">
          {candidates.map(({ field, value }) => (
            <li key={field} className="min-w-0">
              <Check
                label={
                  <code title={`${field} = ${String(value)}`} className="mono wrap-anywhere">
                    {shortField(field)} = <strong className="font-semibold">{String(value)}</strong>
                  </code>
                }
                checked={chosen.has(field)}
                onChange={(isOn) => {
                  const next = new Set(chosen);
                  if (isOn) next.add(field);
                  else next.delete(field);
                  setChosen(next);
                }}
              />
            </li>
          ))}
        </ul>
      </fieldset>
      <Effect alert={alert} exception={exception} />
      <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
        <SelectField label="It holds" value={days} onChange={setDays} options={EXPIRIES} />
        <TextField
          label="Why"
          placeholder="the cleaner's ladder"
          value={reason}
          onChange={({ target }) => setReason(target.value)}
        />
      </div>
    </div>
  );
}

/** What the exception would have done last week. */
function Effect({ alert, exception }: { alert: AlertDetail; exception: Exception | undefined }) {
  const maySimulate = [useMay("rules:read"), useMay("events:read")].every(Boolean);
  const settled = useRest(exception, REST_MS);
  const rule = useQuery({ ...ruleQuery(alert.rule.id), enabled: maySimulate });
  const before = useQuery({ ...weekSimulationQuery(rule.data, null), enabled: rule.data !== undefined });
  const tried = settled === undefined ? null : { conditions: settled.conditions, reason: "a try" };
  const after = useQuery({
    ...weekSimulationQuery(rule.data, tried),
    enabled: before.data !== undefined && tried !== null,
  });
  const error = rule.error ?? before.error ?? after.error;
  const words = !maySimulate
    ? "To try it on the last week, your key needs the scopes rules:read and events:read."
    : exception === undefined
      ? "Choose at least one, or the rule would never fire again."
      : error !== null
        ? `It could not be tried on the last week: ${failureWords(error)}`
        : before.data === undefined || after.data === undefined || settled !== exception
          ? "Trying it on the last week…"
          : silencedWords(before.data, after.data);
  return (
    <p role="status" className="min-h-5 text-xs font-medium text-ink">
      {words}
    </p>
  );
}

/** The value, once it has not changed for a while. */
function useRest<Value>(value: Value, restMs: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), restMs);
    return () => clearTimeout(timer);
  }, [value, restMs]);
  return settled;
}
