import type { Event } from "../../data/client.ts";
import { DOMAINS, domainOf, type Domain } from "../../text/domains.ts";
import type { Entity } from "../entities/entity.ts";

// The rows of an axis: one for each door and camera, and for each group of what calls and the network do.

export interface Lane {
  readonly id: string;
  readonly name: string;
  readonly count: number;
  /** The door or camera whose lane it is. */
  readonly entity?: Entity;
}

export interface LaneGroup {
  readonly domain: Domain;
  readonly lanes: readonly Lane[];
}

/** More doors or cameras than this share a last lane. */
export const LANES_PER_GROUP_MAX = 40;
export const OTHER = "Other";
const NAME_CHARACTERS_MAX = 100;

/** The first that fits, in the order in which the lanes stand. */
const LANES_BY_TYPE: Readonly<Partial<Record<Domain, readonly (readonly [name: string, types: RegExp])[]>>> = {
  talk: [
    ["Calls", /^(call|voicemail)/],
    ["Sign-ins", /^sip/],
  ],
  network: [
    ["Devices joining", /^(client_|dhcp_|device_connected|rogue_)/],
    ["Logins", /^(login_|admin_|app_login|session_|vpn_|config_)/],
    ["Intrusion", /^(ids_|honeypot|anomaly)/],
    ["Names asked for", /^dns_/],
    ["Connections", /^(http|tls|fileinfo|flow)/],
    ["Firewall", /^(firewall_|drop)/],
    ["Equipment", /^(device_|wan_|firmware_|software_)/],
  ],
};

export const laneId = (domain: Domain, name: string) => `${domain}/${name}`;

/** The lane of events whose type alone tells it. */
export function laneOfType(domain: Domain, type: string): string {
  if (domain === "custom") return laneId(domain, "Site systems");
  const found = LANES_BY_TYPE[domain]?.find(([, types]) => types.test(type));
  return laneId(domain, found?.[0] ?? OTHER);
}

export function laneOf(event: Pick<Event, "type" | "source" | "raw">): string {
  const domain = domainOf(event.source);
  const place = domain === "access" ? event.raw["door"] : domain === "protect" ? event.raw["camera"] : undefined;
  if (typeof place === "string" && place !== "") return laneId(domain, place.slice(0, NAME_CHARACTERS_MAX));
  return laneOfType(domain, event.type);
}

const ENTITY_OF_DOMAIN: Partial<Record<Domain, Entity["kind"]>> = { access: "door", protect: "camera" };

function orderIn(domain: Domain) {
  const names = LANES_BY_TYPE[domain]?.map(([name]) => name) ?? [];
  const place = ({ name }: Lane) =>
    name === OTHER ? Number.POSITIVE_INFINITY : names.includes(name) ? names.indexOf(name) : 0;
  return (a: Lane, b: Lane) => place(a) - place(b) || a.name.localeCompare(b.name, "en", { numeric: true });
}

/** The lanes with something on them, in the order of the domains; the lane under which each id stands, itself or `Other`. */
export function lanesOf(counts: ReadonlyMap<string, number>): {
  groups: LaneGroup[];
  laneUnder: ReadonlyMap<string, string>;
} {
  const laneUnder = new Map<string, string>();
  const groups: LaneGroup[] = [];
  for (const domain of DOMAINS) {
    const kind = ENTITY_OF_DOMAIN[domain];
    const all = [...counts]
      .filter(([id, count]) => count > 0 && id.startsWith(`${domain}/`))
      .map(([id, count]): Lane => {
        const name = id.slice(domain.length + 1);
        return { id, name, count, ...(kind !== undefined && name !== OTHER && { entity: { kind, value: name } }) };
      });
    if (all.length === 0) continue;
    const kept = mostUsed(all, laneId(domain, OTHER));
    for (const { id } of all) laneUnder.set(id, kept.has(id) ? id : laneId(domain, OTHER));
    const lanes = all.filter(({ id }) => kept.has(id));
    const rest = all.filter(({ id }) => !kept.has(id)).reduce((sum, { count }) => sum + count, 0);
    if (rest > 0) lanes.push({ id: laneId(domain, OTHER), name: OTHER, count: rest });
    groups.push({ domain, lanes: lanes.toSorted(orderIn(domain)) });
  }
  return { groups, laneUnder };
}

function mostUsed(lanes: readonly Lane[], other: string): ReadonlySet<string> {
  if (lanes.length <= LANES_PER_GROUP_MAX) return new Set(lanes.map(({ id }) => id));
  const named = lanes.filter(({ id }) => id !== other).toSorted((a, b) => b.count - a.count);
  return new Set(named.slice(0, LANES_PER_GROUP_MAX - 1).map(({ id }) => id));
}
