import { keyLabel, KEYS } from "../../app/keys.ts";

const HINTS: readonly (readonly [readonly string[], string])[] = [
  [[KEYS.list.next.keys[0], KEYS.list.previous.keys[0]], "move"],
  [[KEYS.events.expand.keys[0]], "open"],
  [[KEYS.events.filterFor.keys[0]], "filter for the value, or the type"],
  [[KEYS.events.filterOut.keys[0]], "filter it out"],
];

/** The keys of the list, at its foot. */
export function KeyHints() {
  return (
    <div className="flex h-8 shrink-0 items-center gap-4 overflow-hidden border-t border-line px-4 text-2xs whitespace-nowrap text-ink3 max-md:hidden">
      {HINTS.map(([keys, does]) => (
        <span key={does} className="flex items-center gap-1.5">
          {keys.map((key) => (
            <kbd key={key}>{keyLabel(key)}</kbd>
          ))}
          {does}
        </span>
      ))}
      <span className="ml-auto flex items-center gap-1.5">
        <kbd>?</kbd> all keys
      </span>
    </div>
  );
}
