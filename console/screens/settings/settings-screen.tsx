import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { About } from "./about.tsx";
import { Appearance } from "./appearance.tsx";
import { Channels } from "./channels.tsx";
import { Keys } from "./keys.tsx";
import { Storage } from "./storage.tsx";
import { Usage } from "./usage.tsx";

interface Section {
  readonly id: string;
  readonly name: string;
  readonly icon: IconName;
  readonly Body: ComponentType;
}

const SECTIONS: readonly Section[] = [
  { id: "keys", name: "Keys", icon: "key-round", Body: Keys },
  { id: "channels", name: "Channels", icon: "send", Body: Channels },
  { id: "storage", name: "Retention and disk", icon: "hard-drive", Body: Storage },
  { id: "usage", name: "Usage", icon: "gauge", Body: Usage },
  { id: "appearance", name: "Appearance", icon: "sliders-horizontal", Body: Appearance },
  { id: "about", name: "About", icon: "info", Body: About },
];

/** The sections do not fit beside each other on a phone. */
const showWhole = (button: HTMLElement | null) => button?.scrollIntoView({ block: "nearest", inline: "nearest" });

export function SettingsScreen() {
  const { section = SECTIONS[0]!.id } = useSearch({ from: "/settings" });
  const navigate = useNavigate({ from: "/settings" });
  const current = SECTIONS.find(({ id }) => id === section) ?? SECTIONS[0]!;
  return (
    <main className="grid h-full grid-cols-[200px_minmax(0,1fr)] max-md:grid-cols-1 max-md:grid-rows-[auto_minmax(0,1fr)]">
      <nav
        aria-label="Settings"
        className="border-r border-line p-3 max-md:flex max-md:overflow-x-auto max-md:border-r-0 max-md:border-b"
      >
        {SECTIONS.map(({ id, name, icon }) => (
          <button
            key={id}
            ref={id === current.id ? showWhole : undefined}
            type="button"
            aria-current={id === current.id ? "page" : undefined}
            onClick={() => void navigate({ search: (previous) => ({ ...previous, section: id }) })}
            className={`flex w-full items-center gap-2.5 rounded-md px-3 py-2 text-left text-sm whitespace-nowrap max-md:w-auto ${id === current.id ? "bg-accent-soft font-medium text-accent" : "text-ink2 hover:bg-hover"}`}
          >
            <Icon name={icon} size={15} />
            {name}
          </button>
        ))}
      </nav>
      {/* Focusable, so that the keyboard scrolls a section that has nothing to focus. */}
      <div className="min-h-0 overflow-y-auto p-6 max-md:p-4" role="region" aria-label={current.name} tabIndex={0}>
        <div className="mx-auto max-w-4xl space-y-5">
          <h1 className="text-lg font-semibold tracking-tight">{current.name}</h1>
          <current.Body />
        </div>
      </div>
    </main>
  );
}
