import type { IconName } from "../components/ui/icons.tsx";
import type { Scope } from "../data/session.ts";
import type { KEYS } from "./keys.ts";

// The screens of the rail, in its order.

export interface ScreenEntry {
  readonly path: `/${string}`;
  readonly name: string;
  readonly icon: IconName;
  /** Without it the screen is listed, but cannot be opened. */
  readonly scope: Scope | null;
  readonly key: keyof (typeof KEYS)["everywhere"] | null;
}

export const SCREENS = [
  { path: "/home", name: "Home", icon: "gauge", scope: "alerts:read", key: "home" },
  { path: "/alerts", name: "Alerts", icon: "bell", scope: "alerts:read", key: "alerts" },
  { path: "/axis", name: "Axis", icon: "activity", scope: "events:read", key: "axis" },
  { path: "/events", name: "Events", icon: "scroll-text", scope: "events:read", key: "events" },
  { path: "/flows", name: "Flows", icon: "waves", scope: "events:read", key: "flows" },
  { path: "/rules", name: "Rules", icon: "shield", scope: "rules:read", key: "rules" },
  { path: "/sources", name: "Sources", icon: "radio", scope: "events:read", key: "sources" },
  { path: "/settings", name: "Settings", icon: "settings", scope: null, key: null },
] as const satisfies readonly ScreenEntry[];
