import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Check, SelectField, TextField } from "../../../components/ui/fields.tsx";
import { ConditionFields } from "./condition-fields.tsx";
import { list, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { withInputOf } from "./timing-model.ts";
import { Count, Duration, FaultLine, PartChoice, Paths, type OnChange } from "./value-fields.tsx";

interface SequenceProps {
  /** The rule or a part of it. */
  readonly stage: Draft;
  readonly base: Path;
  readonly partNames: readonly string[];
  readonly onChange: OnChange;
}

export function SequenceFields({ stage, base, partNames, onChange }: SequenceProps) {
  const path: Path = [...base, "sequence"];
  const steps = list(stage["sequence"]) as readonly Draft[];
  const isAnyOrder = stage["sequence_order"] === "any";
  const orderPath: Path = [...base, "sequence_order"];
  return (
    <div className="space-y-3">
      <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
        <Duration label="Within" path={[...base, "window"]} value={stage["window"]} onChange={onChange} />
        <SelectField
          label="Order"
          value={isAnyOrder ? "any" : "in_order"}
          onChange={(order) => onChange(orderPath, order === "any" ? "any" : undefined)}
          options={[
            { value: "in_order", label: "in this order" },
            { value: "any", label: "in any order" },
          ]}
          fault={useFault(orderPath)}
        />
        <Paths
          label="All share the same"
          path={[...base, "group_by"]}
          value={stage["group_by"]}
          hint="Such as raw.door."
          onChange={onChange}
        />
        <Count
          label="At least this many of the steps"
          hint="In any order. Empty: all of them."
          path={[...base, "sequence_min"]}
          value={stage["sequence_min"]}
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
            path={[...path, index]}
            step={step}
            partNames={partNames}
            mayRemove={steps.length > 2}
            onChange={onChange}
          />
        ))}
      </ol>
      <Button
        icon="plus"
        onClick={() =>
          onChange([...path, steps.length], {
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
  readonly path: Path;
  readonly step: Draft;
  readonly partNames: readonly string[];
  readonly mayRemove: boolean;
  readonly onChange: OnChange;
}

function Step({ index, path, step, partNames, mayRemove, onChange }: StepProps) {
  return (
    <li className="rounded-lg border border-line p-3">
      <div className="mb-2 grid grid-cols-[20px_minmax(0,1fr)_90px_auto_32px] items-center gap-2 max-md:grid-cols-[20px_minmax(0,1fr)_64px_32px] max-md:[&>label]:col-span-3 max-md:[&>label]:col-start-2 max-md:[&>label]:row-start-2">
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
      <div className="space-y-3">
        <PartChoice
          label={`Step ${index + 1} is`}
          part={step["part"]}
          partNames={partNames}
          path={path}
          onPart={(part) => onChange(path, withInputOf(step, part))}
        />
        {text(step["part"]) === "" && (
          <ConditionFields path={[...path, "conditions"]} conditions={step["conditions"]} onChange={onChange} />
        )}
        <Paths
          label={`What step ${index + 1} shares with the others`}
          path={[...path, "group_by"]}
          value={step["group_by"]}
          hint="Where the field has another name in these events. Empty: as above."
          onChange={onChange}
        />
      </div>
      <FaultLine path={path} />
    </li>
  );
}
