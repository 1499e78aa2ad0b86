import { SelectField, TextField } from "../../../components/ui/fields.tsx";
import { FIELD_NAMES_ID } from "./condition-fields.tsx";
import { pathsText, readPaths, text, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { useTyped } from "./use-typed.ts";

// Fields of the form for one value each; a fault stands under its own.

export type OnChange = (path: Path, value: unknown) => void;

export interface ValueProps {
  readonly label: string;
  readonly path: Path;
  readonly value: unknown;
  readonly onChange: OnChange;
}

export function Duration({ label, path, value, onChange }: ValueProps) {
  return (
    <TextField
      label={label}
      hint="Such as 30s, 5m, 1h or 2d."
      spellCheck={false}
      value={text(value)}
      onChange={({ target }) => onChange(path, target.value)}
      fault={useFault(path)}
    />
  );
}

interface CountProps extends ValueProps {
  readonly isLabelHidden?: boolean;
  readonly hint?: string;
}

export function Count({ label, path, value, onChange, isLabelHidden = false, hint }: CountProps) {
  return (
    <TextField
      label={label}
      isLabelHidden={isLabelHidden}
      {...(hint !== undefined && { hint })}
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

interface PartChoiceProps {
  readonly label: string;
  readonly part: unknown;
  readonly partNames: readonly string[];
  readonly path: Path;
  readonly onPart: (part: string | undefined) => void;
}

/** Whether events count, or how often a part of the rule happened. */
export function PartChoice({ label, part, partNames, path, onPart }: PartChoiceProps) {
  const fault = useFault([...path, "part"]);
  const chosen = typeof part === "string" ? part : "";
  if (partNames.length === 0 && chosen === "") return null;
  const names = chosen === "" || partNames.includes(chosen) ? partNames : [...partNames, chosen];
  return (
    <SelectField
      label={label}
      value={chosen}
      onChange={(name) => onPart(name === "" ? undefined : name)}
      options={[
        { value: "", label: "events that meet the conditions" },
        ...names.map((name) => ({ value: name, label: `the part “${name}”` })),
      ]}
      fault={fault}
    />
  );
}

export function FaultLine({ path }: { path: Path }) {
  const fault = useFault(path);
  return fault === undefined ? null : (
    <p role="alert" className="col-span-full mt-1 text-xs text-critical">
      {fault}
    </p>
  );
}
