import { Button, IconButton } from "../../../components/ui/button.tsx";
import { TextField } from "../../../components/ui/fields.tsx";
import { Segments } from "../../../components/ui/segments.tsx";
import { ConditionFields } from "./condition-fields.tsx";
import { list, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { SequenceFields } from "./sequence-fields.tsx";
import { ThresholdFields } from "./threshold-fields.tsx";
import { newPart, timingOf, withTiming } from "./timing-model.ts";
import { FaultLine, type OnChange } from "./value-fields.tsx";

const KINDS = [
  { value: "many", label: "Many within a time" },
  { value: "steps", label: "One after another" },
] as const;

export const partNamesOf = (rule: Draft) =>
  (list(rule["parts"]) as readonly Draft[]).map((part) => text(part["name"])).filter((name) => name !== "");

/** Correlations that the rule counts or puts in order. A part may use those before it. */
export function PartFields({ rule, onChange }: { rule: Draft; onChange: OnChange }) {
  const parts = list(rule["parts"]) as readonly Draft[];
  return (
    <div className="space-y-3">
      <p className="text-xs text-ink2">
        A part raises no alert: what is above counts how often it happens, or makes it a step. A part may use those
        before it.
      </p>
      {parts.map((part, index) => (
        <PartBox
          // A part may have any name while it is typed.
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          part={part}
          index={index}
          earlier={partNamesOf(rule).slice(0, index)}
          onRemove={() => onChange(parts.length === 1 ? ["parts"] : ["parts", index], undefined)}
          onChange={onChange}
        />
      ))}
      <Button icon="plus" onClick={() => onChange(["parts", parts.length], newPart(`part ${parts.length + 1}`))}>
        Part
      </Button>
    </div>
  );
}

interface PartBoxProps {
  readonly part: Draft;
  readonly index: number;
  readonly earlier: readonly string[];
  readonly onRemove: () => void;
  readonly onChange: OnChange;
}

function PartBox({ part, index, earlier, onRemove, onChange }: PartBoxProps) {
  const path: Path = ["parts", index];
  const kind = timingOf(part) === "steps" ? "steps" : "many";
  return (
    <section aria-label={`Part ${index + 1}`} className="space-y-3 rounded-lg border border-line2 p-3">
      <div className="grid grid-cols-[minmax(0,1fr)_32px] items-end gap-2">
        <TextField
          label={`Name of part ${index + 1}`}
          value={text(part["name"])}
          onChange={({ target }) => onChange([...path, "name"], target.value)}
          fault={useFault([...path, "name"])}
        />
        <IconButton icon="trash-2" label={`Remove part ${index + 1}`} onClick={onRemove} />
      </div>
      <Segments
        label={`How part ${index + 1} happens`}
        value={kind}
        options={KINDS}
        onChange={(next) => next !== kind && onChange(path, withTiming(part, next))}
      />
      <h3 className="text-xs font-medium text-ink2">Holds for each event of the part</h3>
      <ConditionFields path={[...path, "conditions"]} conditions={part["conditions"]} onChange={onChange} />
      {kind === "many" ? (
        <ThresholdFields stage={part} base={path} partNames={earlier} onChange={onChange} />
      ) : (
        <SequenceFields stage={part} base={path} partNames={earlier} onChange={onChange} />
      )}
      <FaultLine path={path} />
    </section>
  );
}
