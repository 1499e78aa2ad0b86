import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Check, SelectField, TextField } from "../../../components/ui/fields.tsx";
import { Segments } from "../../../components/ui/segments.tsx";
import { ConditionFields, FIELD_NAMES_ID } from "./condition-fields.tsx";
import { list, pathsText, readPaths, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { isPlainThreshold, timingOf, withTiming, type Timing } from "./timing-model.ts";
import { useTyped } from "./use-typed.ts";

interface TimingProps {
  readonly rule: Draft;
  readonly onChange: (path: Path, value: unknown) => void;
  readonly onRule: (rule: Draft) => void;
}

const TIMING_WORDS: readonly { readonly value: Timing; readonly label: string }[] = [
  { value: "each", label: "Each event" },
  { value: "many", label: "Many within a time" },
  { value: "steps", label: "One after another" },
  { value: "silence", label: "Silence" },
];

/** When the rule raises an alert. */
export function TimingFields({ rule, onChange, onRule }: TimingProps) {
  const timing = timingOf(rule);
  const hasParts = list(rule["parts"]).length > 0;
  return (
    <div className="space-y-4">
      <Segments
        label="When it raises an alert"
        value={timing}
        options={TIMING_WORDS}
        onChange={(next) => next !== timing && onRule(withTiming(rule, next))}
      />
      {hasParts && (
        <p className="text-xs text-ink2">
          This rule has parts, which can be changed in the YAML. They stay as they are.
        </p>
      )}
      {timing === "each" && <p className="text-sm text-ink2">Every event that meets the conditions is a finding.</p>}
      {timing === "many" && <Many rule={rule} onChange={onChange} />}
      {timing === "steps" && <Steps rule={rule} onChange={onChange} />}
      {timing === "silence" && (
        <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
          <Duration label="No such event for" path={["absence"]} rule={rule} onChange={onChange} />
          <Paths
            label="Counted on its own for each"
            path={["group_by"]}
            value={rule["group_by"]}
            hint="Fields, separated by commas. Empty: the whole site."
            onChange={onChange}
          />
        </div>
      )}
    </div>
  );
}

type PartProps = Pick<TimingProps, "rule" | "onChange">;

function Many({ rule, onChange }: PartProps) {
  const threshold = (rule["threshold"] ?? {}) as Draft;
  const fault = useFault(["threshold"]);
  if (!isPlainThreshold(threshold)) {
    return (
      <div className="space-y-3">
        <Duration label="Within" path={["window"]} rule={rule} onChange={onChange} />
        <p className="text-sm text-ink2">
          The threshold can be changed in the YAML: <code className="mono break-all">{JSON.stringify(threshold)}</code>
        </p>
      </div>
    );
  }
  return (
    <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
      <Count label="At least" path={["threshold", "count"]} value={threshold["count"]} onChange={onChange} />
      <Duration label="Within" path={["window"]} rule={rule} onChange={onChange} />
      <Paths
        label="Counted on its own for each"
        path={["threshold", "group_by"]}
        value={threshold["group_by"]}
        hint="Such as raw.src_ip. Empty: the whole site."
        onChange={onChange}
      />
      <Paths
        label="Count different values of"
        path={["threshold", "distinct"]}
        value={threshold["distinct"]}
        hint="Empty: counts the events."
        onChange={onChange}
      />
      {fault !== undefined && (
        <p role="alert" className="col-span-full text-xs text-critical">
          {fault}
        </p>
      )}
    </div>
  );
}

function Steps({ rule, onChange }: PartProps) {
  const steps = list(rule["sequence"]) as readonly Draft[];
  const isAnyOrder = rule["sequence_order"] === "any";
  return (
    <div className="space-y-3">
      <div className="grid grid-cols-3 gap-3 max-md:grid-cols-1">
        <Duration label="Within" path={["window"]} rule={rule} onChange={onChange} />
        <SelectField
          label="Order"
          value={isAnyOrder ? "any" : "in_order"}
          onChange={(order) => onChange(["sequence_order"], order === "any" ? "any" : undefined)}
          options={[
            { value: "in_order", label: "in this order" },
            { value: "any", label: "in any order" },
          ]}
          fault={useFault(["sequence_order"])}
        />
        <Paths
          label="All share the same"
          path={["group_by"]}
          value={rule["group_by"]}
          hint="Such as raw.door."
          onChange={onChange}
        />
      </div>
      <ol className="space-y-3">
        {steps.map((step, index) => (
          <Step
            // A step may have any name while it is typed.
            // oxlint-disable-next-line react/no-array-index-key
            key={index}
            index={index}
            step={step}
            mayRemove={steps.length > 2}
            onChange={onChange}
          />
        ))}
      </ol>
      <Button
        icon="plus"
        onClick={() =>
          onChange(["sequence", steps.length], {
            name: `step ${steps.length + 1}`,
            conditions: [{ field: "type", equals: "" }],
          })
        }
      >
        Step
      </Button>
    </div>
  );
}

interface StepProps {
  readonly index: number;
  readonly step: Draft;
  readonly mayRemove: boolean;
  readonly onChange: TimingProps["onChange"];
}

function Step({ index, step, mayRemove, onChange }: StepProps) {
  const path: Path = ["sequence", index];
  const fault = useFault(path);
  return (
    <li className="rounded-lg border border-line p-3">
      <div className="mb-2 grid grid-cols-[20px_minmax(0,1fr)_90px_auto_32px] items-center gap-2">
        <span
          aria-hidden
          className="grid size-5 place-items-center rounded-full bg-hover text-2xs font-semibold text-ink2"
        >
          {index + 1}
        </span>
        <TextField
          label={`Name of step ${index + 1}`}
          isLabelHidden
          value={text(step["name"])}
          onChange={({ target }) => onChange([...path, "name"], target.value)}
          fault={useFault([...path, "name"])}
        />
        <Count
          label={`How often step ${index + 1} happens`}
          isLabelHidden
          path={[...path, "count"]}
          value={step["count"] ?? 1}
          onChange={onChange}
        />
        <Check
          label={<span className="text-xs">must not happen</span>}
          checked={step["absent"] === true}
          onChange={(isAbsent) => onChange([...path, "absent"], isAbsent ? true : undefined)}
        />
        <IconButton
          icon="trash-2"
          label={`Remove step ${index + 1}`}
          disabled={!mayRemove}
          onClick={() => onChange(path, undefined)}
        />
      </div>
      {typeof step["part"] === "string" ? (
        <p className="text-sm text-ink2">The part “{step["part"]}”</p>
      ) : (
        <ConditionFields path={[...path, "conditions"]} conditions={step["conditions"]} onChange={onChange} />
      )}
      {fault !== undefined && (
        <p role="alert" className="mt-1 text-xs text-critical">
          {fault}
        </p>
      )}
    </li>
  );
}

function Duration({ label, path, rule, onChange }: PartProps & { label: string; path: Path }) {
  return (
    <TextField
      label={label}
      hint="Such as 30s, 5m, 1h or 2d."
      spellCheck={false}
      value={text(rule[path[0]!])}
      onChange={({ target }) => onChange(path, target.value)}
      fault={useFault(path)}
    />
  );
}

interface ValueProps {
  readonly label: string;
  readonly path: Path;
  readonly value: unknown;
  readonly onChange: TimingProps["onChange"];
}

function Count({ label, path, value, onChange, isLabelHidden = false }: ValueProps & { isLabelHidden?: boolean }) {
  return (
    <TextField
      label={label}
      isLabelHidden={isLabelHidden}
      type="number"
      min={1}
      value={typeof value === "number" ? String(value) : ""}
      onChange={({ target }) => onChange(path, target.value === "" ? undefined : Number(target.value))}
      fault={useFault(path)}
    />
  );
}

export function Paths({ label, path, value, hint, onChange }: ValueProps & { hint: string }) {
  const typed = useTyped(value, pathsText, readPaths);
  return (
    <TextField
      label={label}
      hint={hint}
      list={FIELD_NAMES_ID}
      className="mono"
      spellCheck={false}
      value={typed.text}
      onChange={({ target }) => onChange(path, typed.type(target.value))}
      fault={useFault(path)}
    />
  );
}
