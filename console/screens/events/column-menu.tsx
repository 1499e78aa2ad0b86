import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../components/ui/button.tsx";
import { Check, TextField } from "../../components/ui/fields.tsx";
import { Popover } from "../../components/ui/popover.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import { eventFieldsQuery, type EventQuestion } from "../../data/events.ts";
import { short } from "../../text/numbers.ts";
import { fieldName } from "./filter-text.ts";

interface ColumnMenuProps {
  readonly range: Pick<EventQuestion, "fromMs" | "toMs">;
  readonly columns: readonly string[];
  readonly onColumn: (field: string) => void;
}

const OFFERED_MAX = 60;

/** Which fields stand beside the sentence. */
export function ColumnMenu({ range, columns, onColumn }: ColumnMenuProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover
      title="Columns"
      open={isOpen}
      onOpenChange={setOpen}
      trigger={
        <Button icon="sliders-horizontal" className="max-sm:hidden">
          Columns
        </Button>
      }
    >
      {isOpen && <ColumnChoice range={range} columns={columns} onColumn={onColumn} />}
    </Popover>
  );
}

function ColumnChoice({ range, columns, onColumn }: ColumnMenuProps) {
  const fields = useQuery(eventFieldsQuery(range));
  const [text, setText] = useState("");
  const offered = (fields.data ?? [])
    .filter(({ name, types }) => name !== "timestamp" && !types.every((type) => type === "object"))
    .filter(({ name }) => columns.includes(name) || name.toLowerCase().includes(text.toLowerCase()))
    .toSorted((a, b) => Number(columns.includes(b.name)) - Number(columns.includes(a.name)))
    .slice(0, OFFERED_MAX);
  return (
    <div className="w-72 space-y-3">
      <TextField label="Find a field" value={text} onChange={({ target }) => setText(target.value)} />
      {fields.data === undefined ? (
        <Skeleton className="h-72" />
      ) : (
        <ul className="max-h-80 space-y-1.5 overflow-y-auto" aria-label="Fields">
          {offered.map(({ name, events }) => (
            <li key={name} className="flex items-center pr-2">
              <Check
                label={<span className="mono">{fieldName(name)}</span>}
                checked={columns.includes(name)}
                onChange={() => onColumn(name)}
              />
              <span className="ml-auto text-2xs text-ink3">{short(events)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
