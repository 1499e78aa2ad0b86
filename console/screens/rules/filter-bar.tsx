import { useEffect, useRef, useState } from "react";
import { useKeys } from "../../app/keys.ts";
import { FilterChip } from "../../components/filters/filter-chip.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Menu, type MenuItem } from "../../components/ui/menu.tsx";
import { SEVERITIES } from "../../data/client.ts";
import type { RuleSearch } from "./rule-search.ts";
import { sourceIcon, sourceWord } from "./source-words.ts";

interface FilterBarProps {
  readonly search: RuleSearch;
  readonly sources: readonly string[];
  readonly onChange: (more: RuleSearch) => void;
}

const TYPING_MS = 250;

export function FilterBar({ search, sources, onChange }: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(search.search ?? "");
  const [seen, setSeen] = useState(search.search);
  // The address may change from elsewhere, for example by going back.
  if (search.search !== seen) {
    setSeen(search.search);
    if ((search.search ?? "") !== text.trim()) setText(search.search ?? "");
  }
  useKeys("everywhere", { filter: () => input.current?.focus() });
  useEffect(() => {
    if (text.trim() === (search.search ?? "")) return;
    const timer = setTimeout(() => onChange({ search: text.trim() === "" ? undefined : text.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, search.search, onChange]);

  const items: (MenuItem | "line")[] = [
    ...SEVERITIES.map((severity) => ({
      label: `Severity ${severity}`,
      isChosen: search.severity === severity,
      onChoose: () => onChange({ severity: search.severity === severity ? undefined : severity }),
    })),
    "line",
    ...["any", ...sources].map((source) => ({
      label: `Watches ${sourceWord(source).toLowerCase()}`,
      icon: sourceIcon(source),
      isChosen: search.source === source,
      onChoose: () => onChange({ source: search.source === source ? undefined : source }),
    })),
    "line",
    ...(["true", "false"] as const).map((enabled) => ({
      label: enabled === "true" ? "Switched on" : "Switched off",
      isChosen: search.enabled === enabled,
      onChoose: () => onChange({ enabled: search.enabled === enabled ? undefined : enabled }),
    })),
  ];
  return (
    <div className="flex min-h-8 min-w-0 flex-1 flex-wrap items-center gap-1.5 rounded-md border border-line bg-panel px-1 py-0.5 focus-within:border-accent">
      <Menu
        trigger={
          <button
            type="button"
            aria-label="Add a filter"
            title="Add a filter"
            className="grid size-6 place-items-center rounded text-ink3 hover:bg-hover hover:text-ink"
          >
            <Icon name="list-filter" size={14} />
          </button>
        }
        items={items}
      />
      {search.severity !== undefined && (
        <FilterChip field="severity" value={search.severity} onRemove={() => onChange({ severity: undefined })} />
      )}
      {search.source !== undefined && (
        <FilterChip
          field="watches"
          value={sourceWord(search.source).toLowerCase()}
          onRemove={() => onChange({ source: undefined })}
        />
      )}
      {search.enabled !== undefined && (
        <FilterChip
          field="switched"
          value={search.enabled === "true" ? "on" : "off"}
          onRemove={() => onChange({ enabled: undefined })}
        />
      )}
      <input
        ref={input}
        aria-label="Find rules by name or description"
        placeholder="Find by name or description…"
        value={text}
        maxLength={500}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" || event.key === "Enter") input.current?.blur();
        }}
        className="h-6 min-w-32 flex-1 bg-transparent px-1 text-sm outline-none"
      />
      <kbd aria-hidden className="mr-1 max-md:hidden">
        /
      </kbd>
    </div>
  );
}
