import { useRef, useState } from "react";
import { useKeys } from "../../app/keys.ts";
import { FilterChip } from "../../components/filters/filter-chip.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { portText } from "../../text/ports.ts";
import {
  FILTER_NAMES,
  FILTER_WORDS,
  parseFilterText,
  protocolName,
  type FilterName,
  type FilterSearch,
} from "./flow-filter.ts";

interface FilterBarProps {
  readonly filter: FilterSearch;
  readonly onChange: (more: FilterSearch) => void;
}

function valueText(name: FilterName, value: string): string {
  if (name === "port") return portText(value);
  return name === "protocol" ? protocolName(value) : value;
}

export function FilterBar({ filter, onChange }: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isFaulty, setFaulty] = useState(false);
  useKeys("everywhere", { filter: () => input.current?.focus() });
  return (
    <form
      className="min-w-0 flex-1"
      onSubmit={(event) => {
        event.preventDefault();
        const more = parseFilterText(text);
        setFaulty(more === undefined);
        if (more === undefined) return;
        onChange(more);
        setText("");
      }}
    >
      <div className="flex min-h-8 flex-wrap items-center gap-1.5 rounded-md border border-line bg-panel px-2 py-0.5 focus-within:border-accent">
        <Icon name="list-filter" size={14} className="text-ink3" />
        {FILTER_NAMES.filter((name) => filter[name] !== undefined).map((name) => (
          <FilterChip
            key={name}
            field={FILTER_WORDS[name]}
            value={valueText(name, filter[name]!)}
            onRemove={() => onChange({ [name]: undefined })}
          />
        ))}
        <input
          ref={input}
          aria-label="Filter"
          aria-invalid={isFaulty}
          aria-describedby={isFaulty ? "flow-filter-fault" : undefined}
          placeholder="An address, network, port or protocol…"
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            setFaulty(false);
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") input.current?.blur();
            const last = FILTER_NAMES.findLast((name) => filter[name] !== undefined);
            if (event.key === "Backspace" && text === "" && last !== undefined) onChange({ [last]: undefined });
          }}
          className="h-6 min-w-40 flex-1 bg-transparent text-sm outline-none"
        />
        <kbd aria-hidden className="max-md:hidden">
          /
        </kbd>
      </div>
      {isFaulty && (
        <p id="flow-filter-fault" role="alert" className="mt-1 text-xs text-critical">
          Try 10.20.3.240, from 10.0.0.0/8, port 443 or udp.
        </p>
      )}
    </form>
  );
}
