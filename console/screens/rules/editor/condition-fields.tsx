import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Check, SelectField, TextArea, TextField } from "../../../components/ui/fields.tsx";
import {
  conditionOf,
  kindOf,
  OPERATORS,
  operatorOf,
  readValue,
  valueText,
  withOperator,
  type ConditionKind,
} from "./condition-model.ts";
import { list, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { useTyped } from "./use-typed.ts";

export const FIELD_NAMES_ID = "field-names";

interface ConditionsProps {
  readonly path: Path;
  readonly conditions: unknown;
  readonly onChange: (path: Path, value: unknown) => void;
}

/** Conditions one under the other; groups hold more of them. */
export function ConditionFields({ path, conditions, onChange }: ConditionsProps) {
  const items = list(conditions);
  const fault = useFault(path);
  return (
    <div className="space-y-2">
      {items.map((condition, index) => (
        <Condition
          // Conditions have no other name than their place.
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          place={index + 1}
          path={[...path, index]}
          condition={condition}
          onChange={onChange}
        />
      ))}
      {fault !== undefined && items.length === 0 && (
        <p role="alert" className="text-xs text-critical">
          {fault}
        </p>
      )}
      <div className="flex flex-wrap gap-1">
        <Add label="Condition" onAdd={() => onChange([...path, items.length], conditionOf("test"))} />
        <Add label="Words anywhere" onAdd={() => onChange([...path, items.length], conditionOf("keyword"))} />
        <Add label="One of several" onAdd={() => onChange([...path, items.length], conditionOf("any"))} />
      </div>
    </div>
  );
}

function Add({ label, onAdd }: { label: string; onAdd: () => void }) {
  return (
    <Button look="quiet" icon="plus" className="h-7 px-2 text-xs" onClick={onAdd}>
      {label}
    </Button>
  );
}

interface ConditionProps {
  readonly place: number;
  readonly path: Path;
  readonly condition: unknown;
  readonly onChange: (path: Path, value: unknown) => void;
}

const GROUP_WORDS: Readonly<Record<string, string>> = {
  any: "One of these holds",
  all: "All of these hold",
  not: "This does not hold",
  keyword: "Any field contains",
};

function Condition({ place, path, condition, onChange }: ConditionProps) {
  const kind = kindOf(condition);
  const fault = useFault(path);
  const remove = () => onChange(path, undefined);
  if (kind === "unknown") {
    return (
      <p className="text-sm text-ink2">
        Condition {place} can only be changed in the YAML: <code className="mono">{JSON.stringify(condition)}</code>
      </p>
    );
  }
  if (kind === "test") return <Test place={place} path={path} condition={condition as Draft} onChange={onChange} />;
  const inner = (condition as Draft)[kind];
  return (
    <div className="space-y-2 rounded-lg border border-line bg-app/40 p-3">
      <div className="flex items-center gap-2">
        {kind === "keyword" ? (
          <span className="text-xs font-medium text-ink2">{GROUP_WORDS[kind]}</span>
        ) : (
          <GroupKind kind={kind} path={path} inner={inner} onChange={onChange} />
        )}
        <IconButton icon="trash-2" label={`Remove condition ${place}`} className="ml-auto" onClick={remove} />
      </div>
      {kind === "keyword" && <Keyword path={[...path, "keyword"]} value={inner} onChange={onChange} />}
      {kind === "not" && (
        <Condition
          place={1}
          path={[...path, "not"]}
          condition={inner}
          // Without what it denies, nothing is left of it.
          onChange={(at, value) =>
            at.length === path.length + 1 && value === undefined ? remove() : onChange(at, value)
          }
        />
      )}
      {(kind === "any" || kind === "all") && (
        <ConditionFields path={[...path, kind]} conditions={inner} onChange={onChange} />
      )}
      {fault !== undefined && (
        <p role="alert" className="text-xs text-critical">
          {fault}
        </p>
      )}
    </div>
  );
}

interface GroupKindProps {
  readonly kind: Exclude<ConditionKind, "test" | "keyword">;
  readonly path: Path;
  readonly inner: unknown;
  readonly onChange: (path: Path, value: unknown) => void;
}

function GroupKind({ kind, path, inner, onChange }: GroupKindProps) {
  if (kind === "not") return <span className="text-xs font-medium text-ink2">{GROUP_WORDS["not"]}</span>;
  return (
    <SelectField
      label="How these are combined"
      isLabelHidden
      value={kind}
      onChange={(next) => onChange(path, { [next]: inner })}
      options={[
        { value: "any", label: GROUP_WORDS["any"]! },
        { value: "all", label: GROUP_WORDS["all"]! },
      ]}
    />
  );
}

function Keyword({ path, value, onChange }: { path: Path; value: unknown; onChange: ConditionProps["onChange"] }) {
  const typed = useTyped(
    value,
    (each) => valueText("texts", each),
    (words) => readValue("texts", words),
  );
  return (
    <TextArea
      label="Words, one a line"
      isLabelHidden
      rows={lines(typed.text)}
      value={typed.text}
      onChange={({ target }) => onChange(path, typed.type(target.value))}
      fault={useFault(path)}
    />
  );
}

const lines = (typed: string) => Math.min(8, typed.split("\n").length);
const SEVERAL = new Set(["scalars", "texts"]);

function Test({ place, path, condition, onChange }: ConditionProps & { readonly condition: Draft }) {
  const operator = operatorOf(condition) ?? { ...OPERATORS[0]!, name: "" };
  const rowFault = useFault(path);
  const fieldFault = useFault([...path, "field"]);
  const valueFault = useFault([...path, operator.name]);
  const typed = useTyped(
    condition[operator.name],
    (value) => valueText(operator.kind, value),
    (words) => readValue(operator.kind, words),
  );
  const takesCase =
    ["scalar", "scalars", "texts"].includes(operator.kind) && !["cidr", "time_part"].includes(operator.name);
  return (
    <div className="rounded-lg border border-line bg-app/40 p-2">
      <div className="grid grid-cols-[minmax(0,1.1fr)_minmax(0,1fr)_minmax(0,1.4fr)_32px] items-start gap-2 max-md:grid-cols-[minmax(0,1fr)_32px]">
        {/* On a phone one under the other, as wide as the box; otherwise side by side. */}
        <div className="contents max-md:block max-md:space-y-2">
          <TextField
            label={`Field of condition ${place}`}
            isLabelHidden
            list={FIELD_NAMES_ID}
            className="mono"
            spellCheck={false}
            value={text(condition["field"])}
            onChange={({ target }) => onChange([...path, "field"], target.value)}
            fault={fieldFault}
          />
          <SelectField
            label={`Comparison of condition ${place}`}
            isLabelHidden
            value={operator.name === "prefix" ? "starts_with" : operator.name}
            onChange={(name) => onChange(path, withOperator(condition, name))}
            options={OPERATORS.map(({ name, words }) => ({ value: name, label: words }))}
          />
          {operator.kind === "flag" ? (
            <SelectField
              label={`Value of condition ${place}`}
              isLabelHidden
              value={String(condition[operator.name])}
              onChange={(value) => onChange([...path, operator.name], value === "true")}
              options={[
                { value: "true", label: "yes" },
                { value: "false", label: "no" },
              ]}
            />
          ) : SEVERAL.has(operator.kind) ? (
            <TextArea
              label={`Values of condition ${place}, one a line`}
              isLabelHidden
              rows={lines(typed.text)}
              spellCheck={false}
              placeholder="one a line"
              value={typed.text}
              onChange={({ target }) => onChange([...path, operator.name], typed.type(target.value))}
              fault={valueFault}
            />
          ) : (
            <TextField
              label={`Value of condition ${place}`}
              isLabelHidden
              spellCheck={false}
              placeholder={operator.name === "during" ? "mon-fri 18:00-08:00" : undefined}
              value={typed.text}
              onChange={({ target }) => onChange([...path, operator.name], typed.type(target.value))}
              fault={valueFault}
            />
          )}
        </div>
        <IconButton icon="trash-2" label={`Remove condition ${place}`} onClick={() => onChange(path, undefined)} />
      </div>
      <div className="mt-1 flex flex-wrap items-center gap-x-4">
        {takesCase && (
          <Check
            label={<span className="text-2xs text-ink2">ignore upper and lower case</span>}
            checked={condition["ignore_case"] === true}
            onChange={(isOn) => onChange([...path, "ignore_case"], isOn ? true : undefined)}
          />
        )}
        <button
          type="button"
          className="text-2xs text-ink3 underline decoration-dotted hover:text-ink"
          onClick={() => onChange(path, conditionOf("not", condition))}
        >
          turn into “does not hold”
        </button>
      </div>
      {rowFault !== undefined && (
        <p role="alert" className="mt-1 text-xs text-critical">
          {rowFault}
        </p>
      )}
    </div>
  );
}
