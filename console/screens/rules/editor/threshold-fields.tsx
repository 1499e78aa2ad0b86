import { Button, IconButton } from "../../../components/ui/button.tsx";
import { SelectField, TextField } from "../../../components/ui/fields.tsx";
import { ConditionFields } from "./condition-fields.tsx";
import { list, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import {
  LOWER_BOUNDS,
  measuredField,
  measureOf,
  UPPER_BOUNDS,
  withBound,
  withInputOf,
  withMeasure,
  type Measure,
} from "./timing-model.ts";
import { useTyped } from "./use-typed.ts";
import { Count, Duration, FaultLine, PartChoice, Paths, type OnChange } from "./value-fields.tsx";

const MEASURE_WORDS: readonly { readonly value: Measure; readonly label: string }[] = [
  { value: "count", label: "the number of events" },
  { value: "distinct", label: "the number of different values" },
  { value: "sum", label: "the sum of a field" },
  { value: "avg", label: "the average of a field" },
  { value: "percentile", label: "a percentile of a field" },
];
const BOUND_WORDS: Readonly<Record<string, string>> = {
  gte: "is at least",
  gt: "is more than",
  lte: "is at most",
  lt: "is less than",
};

interface ThresholdProps {
  /** The rule or a part of it. */
  readonly stage: Draft;
  readonly base: Path;
  readonly partNames: readonly string[];
  readonly onChange: OnChange;
}

/** How many events, different values, or how much of a field within a time. */
export function ThresholdFields({ stage, base, partNames, onChange }: ThresholdProps) {
  const path: Path = [...base, "threshold"];
  const threshold = (stage["threshold"] ?? {}) as Draft;
  const measure = measureOf(threshold);
  const isCounted = measure === "count" || measure === "distinct";
  const hasLower = LOWER_BOUNDS.some((name) => threshold[name] !== undefined);
  const fieldPath: Path = measure === "percentile" ? [...path, "percentile", "of"] : [...path, measure];
  return (
    <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
      <SelectField
        label="Compares"
        value={measure}
        onChange={(next) => onChange(path, withMeasure(threshold, next as Measure))}
        options={MEASURE_WORDS}
      />
      <Duration label="Within" path={[...base, "window"]} value={stage["window"]} onChange={onChange} />
      {measure !== "count" && (
        <Paths
          label={measure === "distinct" ? "Different values of" : "Of the field"}
          path={fieldPath}
          value={measuredField(threshold)}
          hint={measure === "distinct" ? "Several fields: different combinations." : "A field that holds a number."}
          onChange={onChange}
        />
      )}
      {measure === "percentile" && (
        <NumberField
          label="Percentile"
          path={[...path, "percentile", "rank"]}
          value={(threshold["percentile"] as Draft)["rank"]}
          onChange={onChange}
        />
      )}
      <Count
        label={isCounted ? "At least" : "Only from this many events on"}
        path={[...path, "count"]}
        value={threshold["count"]}
        onChange={onChange}
      />
      <Paths
        label="Counted on its own for each"
        path={[...path, "group_by"]}
        value={threshold["group_by"]}
        hint="Such as raw.src_ip. Empty: the whole site."
        onChange={onChange}
      />
      {(!isCounted || hasLower) && (
        <Bound label="Lower bound" side={LOWER_BOUNDS} threshold={threshold} path={path} onChange={onChange} />
      )}
      <Bound label="Upper bound" side={UPPER_BOUNDS} threshold={threshold} path={path} onChange={onChange} />
      <FaultLine path={path} />
      <Inputs threshold={threshold} path={path} partNames={partNames} onChange={onChange} />
    </div>
  );
}

interface BoundProps {
  readonly label: string;
  readonly side: readonly string[];
  readonly threshold: Draft;
  readonly path: Path;
  readonly onChange: OnChange;
}

function Bound({ label, side, threshold, path, onChange }: BoundProps) {
  const name = side.find((each) => threshold[each] !== undefined);
  const value = name === undefined ? undefined : threshold[name];
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_110px] items-end gap-2">
      <SelectField
        label={label}
        value={name ?? ""}
        onChange={(next) =>
          onChange(
            path,
            withBound(threshold, side, next === "" ? undefined : next, typeof value === "number" ? value : 100),
          )
        }
        options={[{ value: "", label: "none" }, ...side.map((each) => ({ value: each, label: BOUND_WORDS[each]! }))]}
      />
      {name !== undefined && (
        <NumberField label={`${label}: value`} isLabelHidden path={[...path, name]} value={value} onChange={onChange} />
      )}
    </div>
  );
}

interface NumberProps {
  readonly label: string;
  readonly isLabelHidden?: boolean;
  readonly path: Path;
  readonly value: unknown;
  readonly onChange: OnChange;
}

/** What is no number stays as it was typed: the service says so at this field. */
const readNumber = (typed: string) => (typed.trim() === "" || Number.isNaN(Number(typed)) ? typed : Number(typed));

function NumberField({ label, isLabelHidden = false, path, value, onChange }: NumberProps) {
  const typed = useTyped(value, (each) => (each === undefined ? "" : String(each as number)), readNumber);
  return (
    <TextField
      label={label}
      isLabelHidden={isLabelHidden}
      inputMode="decimal"
      value={typed.text}
      onChange={({ target }) => onChange(path, typed.type(target.value))}
      fault={useFault(path)}
    />
  );
}

interface InputsProps {
  readonly threshold: Draft;
  readonly path: Path;
  readonly partNames: readonly string[];
  readonly onChange: OnChange;
}

/** Several kinds of events, or parts, that count together, each with fields of its own. */
function Inputs({ threshold, path, partNames, onChange }: InputsProps) {
  const inputs = list(threshold["inputs"]) as readonly Draft[];
  const inputsPath: Path = [...path, "inputs"];
  const add = () =>
    onChange([...inputsPath, inputs.length], withInputOf({}, inputs.length === 0 ? partNames[0] : undefined));
  return (
    <div className="col-span-full space-y-3">
      {inputs.map((input, index) => {
        const own: Path = [...inputsPath, index];
        return (
          <section
            // An input has no name.
            // oxlint-disable-next-line react/no-array-index-key
            key={index}
            aria-label={`Counted ${index + 1}`}
            className="space-y-3 rounded-lg border border-line p-3"
          >
            <div className="flex items-center">
              <h3 className="text-xs font-semibold">Counted {index + 1}</h3>
              <IconButton
                icon="trash-2"
                label={`Remove what is counted ${index + 1}`}
                className="ml-auto"
                onClick={() => (inputs.length === 1 ? onChange(inputsPath, undefined) : onChange(own, undefined))}
              />
            </div>
            <PartChoice
              label="Counts"
              part={input["part"]}
              partNames={partNames}
              path={own}
              onPart={(part) => onChange(own, withInputOf(input, part))}
            />
            {text(input["part"]) === "" && (
              <ConditionFields path={[...own, "conditions"]} conditions={input["conditions"]} onChange={onChange} />
            )}
            <div className="grid grid-cols-2 gap-3 max-md:grid-cols-1">
              <Paths
                label="On its own for each, here"
                path={[...own, "group_by"]}
                value={input["group_by"]}
                hint="Where the field has another name in these events."
                onChange={onChange}
              />
              <Paths
                label="Value, here"
                path={[...own, "value"]}
                value={input["value"]}
                hint="Where the measured field has another name."
                onChange={onChange}
              />
            </div>
            <FaultLine path={own} />
          </section>
        );
      })}
      <Button icon="plus" onClick={add}>
        {inputs.length === 0 ? "Count several kinds of events" : "Another kind of events"}
      </Button>
    </div>
  );
}
