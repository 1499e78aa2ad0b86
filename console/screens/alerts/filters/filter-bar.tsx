import { useRef, useState } from "react";
import { keyLabel, KEYS, useKeys } from "../../../app/keys.ts";
import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Check, TextField } from "../../../components/ui/fields.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Popover } from "../../../components/ui/popover.tsx";
import { SEVERITIES } from "../../../data/client.ts";
import { DOMAIN_WORD, domainOf } from "../../../text/domains.ts";
import { ME, NOBODY, type FilterName, type FilterTexts } from "../address.ts";
import { chipsOf, parseFilterText } from "./filter-text.ts";

interface FilterBarProps {
  readonly filters: FilterTexts;
  /** Sources that alerts of this site have. */
  readonly sources: readonly string[];
  readonly onChange: (changes: FilterTexts) => void;
}

export function FilterBar({ filters, sources, onChange }: FilterBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  useKeys("everywhere", { filter: () => input.current?.focus() });
  const apply = () => {
    const typed = parseFilterText(text);
    if (Object.keys(typed).length > 0) onChange(typed);
    setText("");
  };
  return (
    <search className="flex px-4 py-2.5">
      <div className="flex min-h-8 min-w-0 flex-1 flex-wrap items-center gap-1.5 rounded-md border border-line bg-panel py-[3px] pr-2 pl-1 focus-within:border-accent">
        <Popover
          title="Filters"
          align="start"
          trigger={<IconButton icon="list-filter" label="Choose filters" size={14} className="size-6!" />}
        >
          <FilterChoices filters={filters} sources={sources} onChange={onChange} />
        </Popover>
        {chipsOf(filters).map(({ name, label, value }) => (
          <span
            key={name}
            className="inline-flex h-6 max-w-full items-center gap-1 rounded bg-hover pl-2 text-xs whitespace-nowrap"
          >
            <span className="text-ink3">{label}</span>
            <span className="min-w-0 truncate font-medium">{value}</span>
            <button
              type="button"
              aria-label={`Remove the filter ${label} ${value}`}
              onClick={() => onChange({ [name]: undefined })}
              className="grid size-6 shrink-0 place-items-center text-ink3 hover:text-ink"
            >
              <Icon name="x" size={11} />
            </button>
          </span>
        ))}
        <input
          ref={input}
          type="text"
          aria-label="Filter by words, or by name: severity:high, rule:…, door:…, tag:…"
          placeholder="Filter by rule, person, door, address…"
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") apply();
            else if (event.key === "Escape") {
              event.preventDefault();
              setText("");
              input.current?.blur();
            } else if (event.key === "Backspace" && text === "") {
              const last = chipsOf(filters).at(-1);
              if (last !== undefined) onChange({ [last.name]: undefined });
            }
          }}
          className="h-6 min-w-24 flex-1 bg-transparent text-sm outline-none"
        />
        <kbd aria-hidden className="max-md:hidden">
          {keyLabel(KEYS.everywhere.filter.keys[0])}
        </kbd>
      </div>
    </search>
  );
}

const STATUSES = ["open", "acknowledged", "resolved"] as const;

function FilterChoices({ filters, sources, onChange }: FilterBarProps) {
  const [rule, setRule] = useState(filters.rule_name ?? "");
  const [about, setAbout] = useState(filters.entity ?? "");
  const [tag, setTag] = useState(filters.tag ?? "");
  const [assignee, setAssignee] = useState(filters.assignee ?? "");
  const texts: [FilterName, string, string, (text: string) => void, string][] = [
    ["rule_name", "Rule", rule, setRule, "access.door_forced"],
    ["entity", "About: person, door, address…", about, setAbout, "door:Loading dock"],
    ["tag", "Tag", tag, setTag, "guest-network"],
    ["assignee", "Assigned to", assignee, setAssignee, `eva@example.com, ${ME} or ${NOBODY}`],
  ];
  return (
    <form
      className="grid w-[420px] max-w-full grid-cols-2 gap-4 max-md:w-[300px]"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(
          Object.fromEntries(texts.map(([name, , text]) => [name, text.trim() === "" ? undefined : text.trim()])),
        );
      }}
    >
      <Choices legend="Status" name="status" all={STATUSES} filters={filters} onChange={onChange} />
      <Choices legend="Severity" name="severity" all={SEVERITIES} filters={filters} onChange={onChange} />
      {sources.length > 0 && (
        <div className="col-span-2">
          <Choices
            legend="From"
            name="source"
            all={sources}
            word={(source) => DOMAIN_WORD[domainOf(source)]}
            filters={filters}
            onChange={onChange}
          />
        </div>
      )}
      {texts.map(([name, label, text, setText, placeholder]) => (
        <TextField
          key={name}
          label={label}
          placeholder={placeholder}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      ))}
      <div className="col-span-2 flex items-center gap-4">
        <Check
          label="By when it was raised, not when it happened"
          checked={filters.time === "created"}
          onChange={(isOn) => onChange({ time: isOn ? "created" : undefined })}
        />
        <Button type="submit" look="primary" className="ml-auto">
          Filter
        </Button>
      </div>
    </form>
  );
}

interface ChoicesProps {
  readonly legend: string;
  readonly name: FilterName;
  readonly all: readonly string[];
  readonly word?: (value: string) => string;
  readonly filters: FilterTexts;
  readonly onChange: (changes: FilterTexts) => void;
}

const itself = (value: string) => value;

function Choices({ legend, name, all, word = itself, filters, onChange }: ChoicesProps) {
  const chosen = filters[name]?.split(",") ?? [];
  return (
    <fieldset>
      <legend className="mb-1 text-xs font-medium text-ink2">{legend}</legend>
      <div className="flex flex-wrap gap-x-4 gap-y-1">
        {all.map((value) => (
          <Check
            key={value}
            label={word(value)}
            checked={chosen.includes(value)}
            onChange={(isOn) => {
              const next = all.filter((each) => (each === value ? isOn : chosen.includes(each)));
              onChange({ [name]: next.length === 0 ? undefined : next.join(",") });
            }}
          />
        ))}
      </div>
    </fieldset>
  );
}
