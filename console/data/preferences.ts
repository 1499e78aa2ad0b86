import { useSyncExternalStore } from "react";

// What this browser remembers about its reader. Nothing secret: the key is never stored.

export interface Preferences {
  readonly theme: "dark" | "light";
  /** `browser`, `site`, or `UTC`. */
  readonly zone: "browser" | "site" | "UTC";
  readonly density: "comfortable" | "compact";
  /** Single-letter keys can be turned off, for speech input. */
  readonly shortcuts: "on" | "off";
}

const ALLOWED = {
  theme: ["dark", "light"],
  zone: ["browser", "site", "UTC"],
  density: ["comfortable", "compact"],
  shortcuts: ["on", "off"],
} as const satisfies { [Name in keyof Preferences]: readonly Preferences[Name][] };

function read<Name extends keyof Preferences>(name: Name): Preferences[Name] {
  const stored = localStorage.getItem(name);
  const allowed: readonly string[] = ALLOWED[name];
  if (stored !== null && allowed.includes(stored)) return stored as Preferences[Name];
  if (name === "theme") return document.documentElement.dataset["theme"] as Preferences[Name];
  return allowed[0] as Preferences[Name];
}

let current: Preferences | undefined;
const listeners = new Set<() => void>();

export function getPreferences(): Preferences {
  current ??= { theme: read("theme"), zone: read("zone"), density: read("density"), shortcuts: read("shortcuts") };
  return current;
}

export function setPreference<Name extends keyof Preferences>(name: Name, value: Preferences[Name]): void {
  localStorage.setItem(name, value);
  current = { ...getPreferences(), [name]: value };
  if (name === "theme") document.documentElement.dataset["theme"] = value;
  for (const listener of listeners) listener();
}

export function usePreferences(): Preferences {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, getPreferences);
}
