import { useNavigate } from "@tanstack/react-router";
import { RangePicker } from "../../components/time/range-picker.tsx";
import { utcRange } from "../../components/time/range.ts";
import { useRange } from "../../components/time/use-range.ts";
import { useZone, zoneName } from "../../components/time/zone.ts";
import { IconButton } from "../../components/ui/button.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { initials } from "../../components/ui/marks.tsx";
import { Menu } from "../../components/ui/menu.tsx";
import { setPreference, usePreferences } from "../../data/preferences.ts";
import { signOut, useMay, useSession } from "../../data/session.ts";
import { useLiveState, type LiveState } from "../../data/stream.ts";

interface TopBarProps {
  readonly onSearch: () => void;
  readonly onKeys: () => void;
}

export function TopBar({ onSearch, onKeys }: TopBarProps) {
  const zone = useZone();
  // The stream is one of alerts.
  const isLive = useMay("alerts:read");
  const range = useRange();
  return (
    <header className="flex items-center gap-3 border-b border-line bg-panel px-4 print:hidden">
      <button
        type="button"
        onClick={onSearch}
        className="flex h-8 w-80 min-w-0 items-center gap-2 rounded-md border border-line bg-app px-2.5 text-ink3 hover:border-line2"
      >
        <Icon name="search" size={14} />
        <span className="truncate text-sm whitespace-nowrap">Search or jump to a person, door…</span>
        <kbd aria-hidden className="ml-auto max-md:hidden">
          Ctrl K
        </kbd>
      </button>
      <div className="ml-auto flex items-center gap-2">
        {isLive && <LiveMark />}
        <RangePicker />
        <span title={utcRange(range)} className="text-2xs whitespace-nowrap text-ink3 max-md:hidden">
          {zoneName(zone)}
        </span>
        <ThemeButton />
        <Who onKeys={onKeys} />
      </div>
    </header>
  );
}

const LIVE: Record<LiveState, { word: string; tells: string; dot: string }> = {
  live: { word: "Live", tells: "New alerts appear as they are raised.", dot: "bg-good" },
  connecting: { word: "Connecting", tells: "Waiting for the stream of alerts.", dot: "bg-ink3" },
  offline: {
    word: "Offline",
    tells: "The service cannot be reached. What you see is as of the last answer.",
    dot: "bg-ink3",
  },
};

function LiveMark() {
  const state = useLiveState();
  const { word, tells, dot } = LIVE[state];
  return (
    <span
      role="status"
      title={tells}
      className="flex items-center gap-1.5 rounded-full border border-line px-2.5 py-1 text-2xs font-medium text-ink2"
    >
      <span aria-hidden className="relative flex size-2">
        {state === "live" && (
          <span className="absolute inline-flex size-full animate-ping rounded-full bg-good opacity-60 motion-reduce:hidden" />
        )}
        <span className={`relative size-2 rounded-full ${dot}`} />
      </span>
      {word}
    </span>
  );
}

function ThemeButton() {
  const { theme } = usePreferences();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <IconButton
      icon={theme === "dark" ? "sun" : "moon"}
      label={`Switch to the ${other} theme`}
      onClick={() => setPreference("theme", other)}
    />
  );
}

function Who({ onKeys }: { onKeys: () => void }) {
  const navigate = useNavigate();
  const { key } = useSession();
  return (
    <Menu
      heading={
        <>
          Signed in with the key <strong className="text-ink">{key.name}</strong>
        </>
      }
      trigger={
        <button
          type="button"
          aria-label={`${initials(key.name)}: signed in with the key ${key.name}`}
          className="grid size-7 place-items-center rounded-full bg-accent text-2xs font-bold text-accent-ink"
        >
          {initials(key.name)}
        </button>
      }
      items={[
        { label: "Settings", icon: "settings", onChoose: () => void navigate({ to: "/settings" as never }) },
        { label: "All keys", icon: "keyboard", hint: "?", onChoose: onKeys },
        "line",
        { label: "Sign out", icon: "log-out", onChoose: () => void signOut() },
      ]}
    />
  );
}
