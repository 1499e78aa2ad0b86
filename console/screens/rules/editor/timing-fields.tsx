import { Segments } from "../../../components/ui/segments.tsx";
import { list, type Draft } from "./draft.ts";
import { partNamesOf } from "./part-fields.tsx";
import { SequenceFields } from "./sequence-fields.tsx";
import { ThresholdFields } from "./threshold-fields.tsx";
import { timingOf, withTiming, type Timing } from "./timing-model.ts";
import { Duration, Paths, type OnChange } from "./value-fields.tsx";

interface TimingProps {
  readonly rule: Draft;
  readonly onChange: OnChange;
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
  const partNames = partNamesOf(rule);
  // Parts belong to many and to steps alike.
  const choose = (next: Timing) => {
    if (next === timing) return;
    const hasParts = list(rule["parts"]).length > 0 && (next === "many" || next === "steps");
    onRule({ ...withTiming(rule, next), ...(hasParts && { parts: rule["parts"] }) });
  };
  return (
    <div className="space-y-4">
      <Segments label="When it raises an alert" value={timing} options={TIMING_WORDS} onChange={choose} />
      {timing === "each" && <p className="text-sm text-ink2">Every event that meets the conditions is a finding.</p>}
      {timing === "many" && <ThresholdFields stage={rule} base={[]} partNames={partNames} onChange={onChange} />}
      {timing === "steps" && <SequenceFields stage={rule} base={[]} partNames={partNames} onChange={onChange} />}
      {timing === "silence" && (
        <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
          <Duration label="No such event for" path={["absence"]} value={rule["absence"]} onChange={onChange} />
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
