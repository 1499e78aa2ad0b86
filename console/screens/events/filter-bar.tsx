import { useQuery } from "@tanstack/react-query";
import { useId, useRef, useState } from "react";
import { useKeys } from "../../app/keys.ts";
import { FilterChip } from "../../components/filters/filter-chip.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { eventFieldsQuery, fieldValuesQuery, type EventQuestion } from "../../data/events.ts";
import { without, withCondition, type EventFilter } from "./address.ts";
import { parseTyped, typedCondition, unfinished } from "./filter-text.ts";
import { SuggestionList } from "./suggestion-list.tsx";
import { fieldSuggestions, namedField, valueSuggestions, type Suggestion } from "./suggestions.ts";
import { conditionWords } from "./words.ts";

interface FilterBarProps {
  readonly filter: EventFilter;
  readonly range: Pick<EventQuestion, "fromMs" | "toMs">;
  readonly onChange: (filter: EventFilter) => void;
}

const VALUES_OFFERED = 200;
const NO_VALUES: readonly never[] = [];

/** Conditions as chips, and a place to type more of them or words. */
export function FilterBar({ filter, range, onChange }: FilterBarProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [highlighted, setHighlighted] = useState(-1);
  const suggestions = useSuggestions(text, range, isOpen);
  useKeys("everywhere", { filter: () => input.current?.focus() });

  const submit = (typed: string) => {
    const { conditions, words } = parseTyped(typed);
    const more = conditions.reduce(withCondition, filter);
    onChange({ ...more, words: [filter.words, words].filter((part) => part !== "").join(" ") });
    type("");
    setOpen(false);
  };
  const type = (typed: string) => {
    setText(typed);
    setHighlighted(-1);
    setOpen(true);
  };
  const choose = (suggestion: Suggestion) => {
    if (suggestion.isComplete) submit(suggestion.text);
    else type(suggestion.text);
    input.current?.focus();
  };
  const edit = (typed: string, rest: EventFilter) => {
    onChange(rest);
    type(typed);
    input.current?.focus();
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const last = filter.conditions.at(-1);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const count = suggestions.length + 1;
      if (suggestions.length > 0) setHighlighted(((highlighted + 1 + step + count) % count) - 1);
    } else if (event.key === "Escape") {
      if (highlighted >= 0) setHighlighted(-1);
      else input.current?.blur();
    } else if (event.key === "Tab" && text !== "" && suggestions[0]?.isComplete === false) {
      event.preventDefault();
      choose(suggestions[Math.max(0, highlighted)]!);
    } else if (event.key === "Backspace" && text === "") {
      if (filter.words !== "") edit(filter.words, { ...filter, words: "" });
      else if (last !== undefined) edit(typedCondition(last), without(filter, last));
      else return;
      event.preventDefault();
    }
  };
  return (
    <form
      role="search"
      className="relative"
      onSubmit={(event) => {
        event.preventDefault();
        const chosen = suggestions[highlighted];
        if (chosen !== undefined) choose(chosen);
        else if (text.trim() !== "") submit(text);
      }}
    >
      <div className="flex min-h-8 flex-wrap items-center gap-1.5 rounded-md border border-line bg-panel px-2 py-0.5 focus-within:border-accent">
        <Icon name="list-filter" size={14} className="text-ink3" />
        {filter.conditions.map((condition) => (
          <FilterChip
            key={typedCondition(condition)}
            {...conditionWords(condition)}
            onRemove={() => onChange(without(filter, condition))}
            onEdit={() => edit(typedCondition(condition), without(filter, condition))}
          />
        ))}
        {filter.words !== "" && (
          <FilterChip
            field="words"
            value={filter.words}
            onRemove={() => onChange({ ...filter, words: "" })}
            onEdit={() => edit(filter.words, { ...filter, words: "" })}
          />
        )}
        <input
          ref={input}
          role="combobox"
          aria-label="Filter events"
          aria-expanded={isOpen && suggestions.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={highlighted >= 0 ? `${id}-${highlighted}` : undefined}
          autoComplete="off"
          spellCheck={false}
          placeholder="user=admin, or words…"
          value={text}
          onFocus={() => setOpen(true)}
          onPointerDown={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onChange={({ target }) => type(target.value)}
          onKeyDown={onKeyDown}
          className="h-6 min-w-40 flex-1 bg-transparent text-sm outline-none"
        />
        <kbd aria-hidden className="max-md:hidden">
          /
        </kbd>
      </div>
      {isOpen && (
        <SuggestionList id={id} suggestions={suggestions} highlighted={highlighted} text={text} onChoose={choose} />
      )}
    </form>
  );
}

/** Asked for once per range and field, not at each key. */
function useSuggestions(text: string, range: FilterBarProps["range"], isOpen: boolean): Suggestion[] {
  const typing = unfinished(text);
  const field = namedField(typing);
  const fields = useQuery({ ...eventFieldsQuery(range), enabled: isOpen });
  const known = fields.data?.find(({ name }) => name === field);
  const question = { ...range, conditions: NO_VALUES, words: "" };
  const values = useQuery({
    ...fieldValuesQuery(question, [field ?? ""], VALUES_OFFERED),
    enabled: isOpen && known !== undefined,
    placeholderData: undefined,
  });
  if (!isOpen) return [];
  if (field === undefined) return fieldSuggestions(typing, fields.data ?? []);
  const counted = values.data?.get(field)?.values;
  return valueSuggestions(typing, counted ?? known?.examples.map((value) => ({ value, count: undefined })) ?? []);
}
