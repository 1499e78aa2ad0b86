import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useId, useRef, useState } from "react";
import { ENTITY_ICON, ENTITY_WORD } from "../../components/entities/entity.ts";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { entitySearchQuery } from "../../data/entities.ts";
import { useSession } from "../../data/session.ts";
import { SCREENS } from "../screens.ts";
import { keepRange } from "../shell/rail.tsx";

interface Choice {
  readonly id: string;
  readonly icon: IconName;
  readonly label: string;
  readonly note: string;
  readonly go: () => void;
}

/** Goes to a screen, to an alert by its id, to an entity, or searches alerts and events for words. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  const choices = useChoices(text.trim(), onClose);
  const current = Math.min(chosen, choices.length - 1);
  return (
    <Sheet open onClose={onClose} title="Search or jump to" initialFocus={input}>
      <input
        ref={input}
        role="combobox"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={choices[current] && `${list}-${current}`}
        aria-label="A screen, person, door, camera, address, device, or words"
        placeholder="A screen, person, door, address, or words"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setChosen((current + step + choices.length) % Math.max(1, choices.length));
          } else if (event.key === "Enter") {
            choices[current]?.go();
          }
        }}
        className="h-10 w-full rounded-md border border-line2 bg-app px-3 text-base focus:border-accent focus:outline-2 focus:outline-accent"
      />
      <ul id={list} role="listbox" aria-label="Choices" className="mt-3 space-y-0.5">
        {choices.map((choice, index) => (
          // The input has the focus; its keys choose.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={choice.id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === current}
            onMouseEnter={() => setChosen(index)}
            onClick={choice.go}
            className={`flex cursor-pointer items-center gap-3 rounded-md px-3 py-2 text-sm ${index === current ? "bg-accent-soft" : ""}`}
          >
            <Icon name={choice.icon} size={15} className="text-ink3" />
            <span className="min-w-0 flex-1 truncate">{choice.label}</span>{" "}
            <span className="text-2xs text-ink3">{choice.note}</span>
          </li>
        ))}
      </ul>
    </Sheet>
  );
}

function useChoices(text: string, onClose: () => void): Choice[] {
  const navigate = useNavigate();
  const { key } = useSession();
  const deferred = useDeferredValue(text);
  const mayReadEvents = key.scopes.includes("events:read");
  const entities = useQuery({ ...entitySearchQuery(deferred), enabled: mayReadEvents && deferred.length > 1 });
  const go = (options: object) => () => {
    onClose();
    void navigate(options as never);
  };
  const screens = SCREENS.filter(
    ({ name, scope }) =>
      name.toLowerCase().startsWith(text.toLowerCase()) && (scope === null || key.scopes.includes(scope)),
  ).map((screen) => ({
    id: screen.path,
    icon: screen.icon,
    label: screen.name,
    note: "screen",
    go: go({ to: screen.path, search: keepRange }),
  }));
  if (text === "") return screens;
  const found = (entities.data ?? []).map(({ kind, value }) => ({
    id: `${kind} ${value}`,
    icon: ENTITY_ICON[kind],
    label: value,
    note: ENTITY_WORD[kind],
    go: go({ to: "/entity/$kind/$value", params: { kind, value }, search: keepRange }),
  }));
  const words: Choice[] = [];
  if (/^alt_[0-9a-z]+$/.test(text)) {
    words.push({
      id: "alert",
      icon: "bell",
      label: text,
      note: "alert",
      go: go({ to: "/alerts", search: { alert: text } }),
    });
  }
  if (key.scopes.includes("alerts:read")) {
    const search = (previous: Record<string, unknown>) => ({ ...keepRange(previous), view: "all", search: text });
    words.push({
      id: "in alerts",
      icon: "bell",
      label: `“${text}” in alerts`,
      note: "search",
      go: go({ to: "/alerts", search }),
    });
  }
  if (mayReadEvents) {
    const search = (previous: Record<string, unknown>) => ({ ...keepRange(previous), search: text });
    words.push({
      id: "in events",
      icon: "scroll-text",
      label: `“${text}” in events`,
      note: "search",
      go: go({ to: "/events", search }),
    });
  }
  return [...screens, ...found, ...words];
}
