import { Button, IconButton } from "../../../components/ui/button.tsx";
import { TextField } from "../../../components/ui/fields.tsx";
import { ConditionFields } from "./condition-fields.tsx";
import { list, text, type Draft, type Path } from "./draft.ts";
import { useFault } from "./fault-context.ts";
import { FaultLine, type OnChange } from "./value-fields.tsx";

/** Events that the rule ignores, each with a reason. */
export function ExceptionFields({ rule, onChange }: { rule: Draft; onChange: OnChange }) {
  const exceptions = list(rule["exceptions"]) as readonly Draft[];
  return (
    <div className="space-y-3">
      {exceptions.map((exception, index) => (
        <ExceptionBox
          // A new exception has no id yet.
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          exception={exception}
          index={index}
          onRemove={() => onChange(exceptions.length === 1 ? ["exceptions"] : ["exceptions", index], undefined)}
          onChange={onChange}
        />
      ))}
      <Button
        icon="plus"
        onClick={() =>
          onChange(["exceptions", exceptions.length], { conditions: [{ field: "type", equals: "" }], reason: "" })
        }
      >
        Exception
      </Button>
    </div>
  );
}

interface ExceptionBoxProps {
  readonly exception: Draft;
  readonly index: number;
  readonly onRemove: () => void;
  readonly onChange: OnChange;
}

function ExceptionBox({ exception, index, onRemove, onChange }: ExceptionBoxProps) {
  const path: Path = ["exceptions", index];
  return (
    <section aria-label={`Exception ${index + 1}`} className="space-y-3 rounded-lg border border-line p-3">
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(0,1fr)_32px] items-start gap-2">
        <TextField
          label={`Reason of exception ${index + 1}`}
          value={text(exception["reason"])}
          onChange={({ target }) => onChange([...path, "reason"], target.value)}
          fault={useFault([...path, "reason"])}
        />
        <TextField
          label="Until"
          hint="Such as 2027-01-01T00:00:00Z. Empty: for good."
          spellCheck={false}
          value={text(exception["expires_at"])}
          onChange={({ target }) => onChange([...path, "expires_at"], target.value === "" ? undefined : target.value)}
          fault={useFault([...path, "expires_at"])}
        />
        <IconButton icon="trash-2" label={`Remove exception ${index + 1}`} className="mt-5" onClick={onRemove} />
      </div>
      <ConditionFields path={[...path, "conditions"]} conditions={exception["conditions"]} onChange={onChange} />
      <FaultLine path={path} />
    </section>
  );
}
