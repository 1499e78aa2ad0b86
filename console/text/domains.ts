import type { IconName } from "../components/ui/icons.tsx";

// The parts of a site that events come from. They differ by lane, icon and word, never by colour.

export const DOMAINS = ["access", "protect", "talk", "network", "custom"] as const;
export type Domain = (typeof DOMAINS)[number];

/** `platform_access` is `access`; the platform's word is a setting. */
export function domainOf(source: string): Domain {
  const kind = source.slice(source.lastIndexOf("_") + 1);
  return DOMAINS.find((domain) => domain === kind) ?? "custom";
}

export const DOMAIN_WORD: Record<Domain, string> = {
  access: "Doors",
  protect: "Cameras",
  talk: "Calls",
  network: "Network",
  custom: "Site",
};

export const DOMAIN_ICON: Record<Domain, IconName> = {
  access: "door-open",
  protect: "camera",
  talk: "phone",
  network: "network",
  custom: "server",
};
