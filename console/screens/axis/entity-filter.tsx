import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { ENTITY_ICON, ENTITY_WORD, type Entity } from "../../components/entities/entity.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { Popover } from "../../components/ui/popover.tsx";
import { entitySearchQuery } from "../../data/entities.ts";

interface EntityFilterProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly onChoose: (entity: Entity) => void;
}

/** Finds a person, door, camera, address, device or number to follow on the axis. */
export function EntityFilter({ open, onOpenChange, onChoose }: EntityFilterProps) {
  return (
    <Popover
      title="Place or person"
      align="start"
      open={open}
      onOpenChange={onOpenChange}
      trigger={
        <button
          type="button"
          className="inline-flex h-7 shrink-0 items-center gap-1 rounded-full border border-dashed border-line2 px-2.5 text-xs whitespace-nowrap text-ink3 hover:text-ink"
        >
          <Icon name="plus" size={12} /> Place or person
        </button>
      }
    >
      <EntitySearch
        onChoose={(entity) => {
          onOpenChange(false);
          onChoose(entity);
        }}
      />
    </Popover>
  );
}

function EntitySearch({ onChoose }: { onChoose: (entity: Entity) => void }) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const list = useId();
  const wanted = useDeferredValue(text.trim());
  const entities = useQuery({ ...entitySearchQuery(wanted), enabled: wanted.length > 1 });
  const choices: readonly Entity[] = wanted.length > 1 ? (entities.data ?? []) : [];
  const current = Math.min(place, choices.length - 1);
  return (
    <div className="w-72 max-w-full">
      <input
        role="combobox"
        // The popover was opened in order to type here.
        autoFocus
        aria-expanded={choices.length > 0}
        aria-controls={list}
        aria-activedescendant={choices[current] && `${list}-${current}`}
        aria-label="Person, door, camera, address, device or number"
        placeholder="ada.morin, Loading dock, 10.20.3.240"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setPlace(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined && choices.length > 0) {
            event.preventDefault();
            setPlace((current + step + choices.length) % choices.length);
          } else if (event.key === "Enter" && choices[current] !== undefined) {
            onChoose(choices[current]);
          }
        }}
        className="h-9 w-full rounded-md border border-line2 bg-app px-2.5 text-sm focus:border-accent focus:outline-2 focus:outline-accent"
      />
      <ul id={list} role="listbox" aria-label="Places and people" className="mt-2 min-h-16 space-y-0.5">
        {choices.map(({ kind, value }, index) => (
          // The input has the focus; its keys choose.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={`${kind} ${value}`}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === current}
            onMouseEnter={() => setPlace(index)}
            onClick={() => onChoose({ kind, value })}
            className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm ${index === current ? "bg-accent-soft" : ""}`}
          >
            <Icon name={ENTITY_ICON[kind]} size={14} className="text-ink3" />
            <span className="min-w-0 flex-1 truncate">{value}</span>
            <span className="text-2xs text-ink3">{ENTITY_WORD[kind]}</span>
          </li>
        ))}
      </ul>
      <p role="status" className="px-1 text-2xs text-ink3">
        {wanted.length < 2
          ? "Type two letters or more."
          : entities.isError
            ? entities.error.message
            : entities.isSuccess && choices.length === 0
              ? "No event names anything like that."
              : ""}
      </p>
    </div>
  );
}
