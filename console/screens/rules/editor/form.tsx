import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { Check, SelectField, TextArea, TextField } from "../../../components/ui/fields.tsx";
import { channelsQuery } from "../../../data/channels.ts";
import { SEVERITIES } from "../../../data/client.ts";
import { eventFieldsQuery } from "../../../data/rules.ts";
import { useMay } from "../../../data/session.ts";
import { siteQuery } from "../../../data/site.ts";
import { CHANNEL_NAMES } from "../../../text/channels.ts";
import { sourceWord } from "../source-words.ts";
import { ConditionFields, FIELD_NAMES_ID } from "./condition-fields.tsx";
import { list, text, valueAt, withValue, writePath, type Draft, type Path } from "./draft.ts";
import { ExceptionFields } from "./exception-fields.tsx";
import { useFault } from "./fault-context.ts";
import { formGaps } from "./form-gaps.ts";
import { PartFields } from "./part-fields.tsx";
import { TimingFields } from "./timing-fields.tsx";
import { timingOf } from "./timing-model.ts";
import { useTyped } from "./use-typed.ts";
import { Paths } from "./value-fields.tsx";

interface RuleFormProps {
  readonly rule: Draft;
  /** An existing rule keeps its name. */
  readonly isNameFixed: boolean;
  readonly onRule: (rule: Draft) => void;
  readonly onYaml: () => void;
}

export function RuleForm({ rule, isNameFixed, onRule, onYaml }: RuleFormProps) {
  const change = (path: Path, value: unknown) => onRule(withValue(rule, path, value));
  const set = (name: string) => (value: unknown) => change([name], value);
  const site = useQuery(siteQuery);
  const timing = timingOf(rule);
  const sources = ["any", ...(site.data?.sources ?? [])];
  const source = text(rule["source"]) || "any";
  return (
    <div className="space-y-6">
      <FieldNames />
      <Part title="What it is">
        <TextField
          label="Name"
          hint={
            isNameFixed ? "The name of a rule cannot change." : "Lower case, with a dot, such as site.failed_logins."
          }
          className="mono"
          spellCheck={false}
          readOnly={isNameFixed}
          value={text(rule["name"])}
          onChange={({ target }) => change(["name"], target.value)}
          fault={useFault(["name"])}
        />
        <TextArea
          label="Description"
          hint="For who gets the alert: what it means, and after an empty line what to do."
          rows={6}
          value={text(rule["description"])}
          onChange={({ target }) => change(["description"], target.value)}
          fault={useFault(["description"])}
        />
        <TextField
          label="Title of its alerts"
          hint="Filled from the event: Failed logins from {{raw.src_ip}}. Empty: the first line of the description."
          value={text(rule["title"])}
          onChange={({ target }) => change(["title"], target.value === "" ? undefined : target.value)}
          fault={useFault(["title"])}
        />
        <div className="grid grid-cols-2 gap-3">
          <SelectField
            label="Severity"
            value={text(rule["severity"])}
            onChange={set("severity")}
            options={SEVERITIES.map((severity) => ({ value: severity, label: severity }))}
            fault={useFault(["severity"])}
          />
          <SelectField
            label="Watches"
            value={source}
            onChange={set("source")}
            options={(sources.includes(source) ? sources : [...sources, source]).map((each) => ({
              value: each,
              label: sourceWord(each),
            }))}
            fault={useFault(["source"])}
          />
        </div>
      </Part>
      <Part title={timing === "steps" ? "What holds in every step" : "What it looks for"}>
        {timing !== "steps" && <p className="text-xs text-ink2">All of these must hold for one event.</p>}
        <ConditionFields path={["conditions"]} conditions={rule["conditions"]} onChange={change} />
      </Part>
      <Part title="When it raises an alert">
        <TimingFields rule={rule} onChange={change} onRule={onRule} />
      </Part>
      {(timing === "many" || timing === "steps" || list(rule["parts"]).length > 0) && (
        <Part title="Parts">
          <PartFields rule={rule} onChange={change} />
        </Part>
      )}
      <Part title="What it ignores">
        <ExceptionFields rule={rule} onChange={change} />
      </Part>
      <Part title="What happens then">
        <Channels rule={rule} onChange={change} />
        <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
          <TextField
            label="Findings closer together than this join one alert"
            hint="Such as 1h."
            value={text(valueAt(rule, ["dedup", "period"]))}
            onChange={({ target }) => change(["dedup", "period"], target.value)}
            fault={useFault(["dedup", "period"])}
          />
          <Paths
            label="One alert for each"
            hint="Empty: as it is counted above."
            path={["dedup", "by"]}
            value={valueAt(rule, ["dedup", "by"])}
            onChange={change}
          />
        </div>
        <Tags rule={rule} onChange={change} />
        <References rule={rule} onChange={change} />
        <Check
          label="The rule is on"
          checked={rule["enabled"] !== false}
          onChange={(isOn) => change(["enabled"], isOn)}
        />
      </Part>
      <OnlyInYaml rule={rule} onYaml={onYaml} />
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="min-w-0 space-y-3 rounded-xl border border-line bg-panel p-4">
      <legend className="sr-only">{title}</legend>
      <h2 aria-hidden className="text-xs font-semibold">
        {title}
      </h2>
      {children}
    </fieldset>
  );
}

interface FieldsProps {
  readonly rule: Draft;
  readonly onChange: (path: Path, value: unknown) => void;
}

function Tags({ rule, onChange }: FieldsProps) {
  const typed = useTyped(
    list(rule["tags"]),
    (tags) => tags.join(", "),
    (words) =>
      words
        .split(",")
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ""),
  );
  return (
    <TextField
      label="Tags"
      hint="Separated by commas, such as login, attack.t1110."
      value={typed.text}
      onChange={({ target }) => onChange(["tags"], typed.type(target.value))}
      fault={useFault(["tags"])}
    />
  );
}

function References({ rule, onChange }: FieldsProps) {
  const typed = useTyped(
    list(rule["references"]),
    (lines) => lines.join("\n"),
    (words) => words.split("\n").filter((line) => line.trim() !== ""),
  );
  return (
    <TextArea
      label="References"
      hint="Addresses of pages to read, one a line."
      rows={2}
      value={typed.text}
      onChange={({ target }) => onChange(["references"], typed.type(target.value))}
      fault={useFault(["references"])}
    />
  );
}

/** What the form has no field for: shown as it is, and changed elsewhere. */
function OnlyInYaml({ rule, onYaml }: { rule: Draft; onYaml: () => void }) {
  const gaps = formGaps(rule);
  const origin = rule["origin"];
  const shown = [...gaps, ...(origin === undefined || origin === null ? [] : [{ path: ["origin"], value: origin }])];
  if (shown.length === 0) return null;
  return (
    <Part title="Only in the YAML">
      <p className="text-xs text-ink2">The form has no field for this. It stays as it is.</p>
      <dl className="space-y-1 text-xs">
        {shown.map(({ path, value }) => (
          <div key={writePath(path)} className="grid grid-cols-[160px_minmax(0,1fr)] gap-3">
            <dt className="mono text-ink3">{writePath(path)}</dt>
            <dd className="mono break-all">{JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      <Button icon="pencil" onClick={onYaml}>
        Edit in YAML
      </Button>
    </Part>
  );
}

const CHANNELS_PATH: Path = ["actions", 0, "alert", "channels"];

function Channels({ rule, onChange }: FieldsProps) {
  const mayRead = useMay("alerts:read");
  const known = useQuery({ ...channelsQuery, enabled: mayRead });
  const chosen = list(valueAt(rule, CHANNELS_PATH));
  const fault = useFault(CHANNELS_PATH) ?? undefined;
  return (
    <fieldset>
      <legend className="mb-1 text-xs font-medium text-ink2">Tell</legend>
      <div className="flex flex-wrap gap-x-5 gap-y-1">
        {CHANNEL_NAMES.map((name) => {
          const isMissing = known.data?.find((channel) => channel.name === name)?.configured === false;
          return (
            <Check
              key={name}
              label={
                <>
                  {name}
                  {isMissing && <span className="ml-1.5 text-2xs text-ink3">not configured</span>}
                </>
              }
              checked={chosen.includes(name)}
              onChange={(isChosen) =>
                onChange(CHANNELS_PATH, isChosen ? [...chosen, name] : chosen.filter((each) => each !== name))
              }
            />
          );
        })}
      </div>
      {fault !== undefined && (
        <p role="alert" className="mt-1 text-xs text-critical">
          {fault}
        </p>
      )}
    </fieldset>
  );
}

const FIRST_FIELDS = ["type", "source", "severity", "class", "timestamp", "*"];

/** Suggestions for the names of fields. */
function FieldNames() {
  const mayRead = useMay("events:read");
  const fields = useQuery({ ...eventFieldsQuery, enabled: mayRead });
  const names = new Set([...FIRST_FIELDS, ...(fields.data ?? [])]);
  return (
    <datalist id={FIELD_NAMES_ID}>
      {[...names].map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}
