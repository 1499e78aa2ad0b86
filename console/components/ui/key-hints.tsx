import { keyLabel, type KeyBinding } from "../../app/keys.ts";
import { usePreferences } from "../../data/preferences.ts";

/** Keys that do one thing, and the thing in a word or two. */
export type KeyHint = readonly [bindings: readonly KeyBinding[], does: string];

/** The keys of a list, at its foot. The sheet behind `?` has them all, also for screen readers. */
export function KeyHints({ hints }: { hints: readonly KeyHint[] }) {
  const { shortcuts } = usePreferences();
  if (shortcuts === "off") return null;
  return (
    <div
      aria-hidden
      className="flex h-9 shrink-0 items-center gap-4 overflow-hidden border-t border-line bg-panel px-4 text-2xs whitespace-nowrap text-ink3 max-md:hidden"
    >
      {hints.map(([bindings, does]) => (
        <span key={does} className="flex items-center gap-1">
          {bindings.map(({ keys }) => (
            <kbd key={keys[0]}>{keyLabel(keys[0]!)}</kbd>
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
