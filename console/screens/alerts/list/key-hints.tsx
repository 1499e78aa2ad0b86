import { keyLabel, KEYS } from "../../../app/keys.ts";
import { usePreferences } from "../../../data/preferences.ts";

const HINTS = [
  [[KEYS.list.next, KEYS.list.previous], "move"],
  [[KEYS.list.openGroup], "open group"],
  [[KEYS.list.select], "select"],
  [[KEYS.alert.acknowledge], "acknowledge"],
  [[KEYS.alert.resolve], "resolve"],
  [[KEYS.alert.exception], "exception"],
] as const;

export function KeyHints() {
  const { shortcuts } = usePreferences();
  if (shortcuts === "off") return null;
  return (
    <div
      aria-hidden
      className="flex h-9 shrink-0 items-center gap-4 overflow-hidden border-t border-line bg-panel px-4 text-2xs whitespace-nowrap text-ink3 max-md:hidden"
    >
      {HINTS.map(([bindings, does]) => (
        <span key={does} className="flex items-center gap-1">
          {bindings.map(({ keys }) => (
            <kbd key={keys[0]}>{keyLabel(keys[0])}</kbd>
          ))}
          {does}
        </span>
      ))}
      <span className="ml-auto flex items-center gap-1">
        <kbd>?</kbd> all keys
      </span>
    </div>
  );
}
