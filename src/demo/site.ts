import type { JsonObject } from "../model/event.ts";
import type { Random } from "./random.ts";

// The fictional demo site: one building with offices, a yard and a loading dock. Public addresses are reserved for documentation
// and telephone numbers for fiction, so no real person or network appears.

export interface Person {
  readonly user: string;
  readonly name: string;
  readonly extension: string;
  readonly badge: string;
  readonly laptop: Device;
  /** The address from which this person connects to the VPN. */
  readonly remote: Outsider;
}

export interface Device {
  readonly host: string;
  readonly ip: string;
  readonly mac: string;
  /** The person who uses it; absent for cameras and printers. */
  readonly user?: string;
  /** Where the device joins the network. */
  readonly uplink: string;
}

export interface Outsider {
  readonly ip: string;
  readonly enrichment: JsonObject;
}

/** Everything that events and flows name. The same thing has the same name, address and owner in all of them. */
export interface DemoSite {
  readonly people: readonly Person[];
  /** Laptops, telephones and tablets, the most used first. */
  readonly devices: readonly Device[];
  readonly deskPhones: readonly Device[];
  /** In the order of CAMERAS. */
  readonly cameras: readonly Device[];
  /** Public addresses; a few of them cause most of the events. */
  readonly outsiders: readonly Outsider[];
}

const NAMES = (
  "Ada Morin, Ben Okafor, Carla Weiss, Dmitri Volkov, Elena Rossi, Farid Haddad, Grace Lindqvist, Hugo Marchand, Ines Carvalho, " +
  "Jonas Keller, Kaya Demir, Liam Byrne, Mei Tanaka, Noor Rahman, Olga Petrova, Pablo Serrano, Quentin Roy, Rosa Jimenez, " +
  "Sven Nilsen, Tara Singh, Uma Pillai, Viktor Horvat, Wanda Kowalska, Xavier Dupont, Yara Mansour, Zoe Fischer"
).split(", ");

const PLACES: readonly (readonly [country: string, city: string])[] = [
  ["NL", "Amsterdam"],
  ["DE", "Frankfurt"],
  ["US", "Ashburn"],
  ["US", "Chicago"],
  ["BR", "São Paulo"],
  ["IN", "Mumbai"],
  ["SG", "Singapore"],
  ["FR", "Paris"],
  ["GB", "London"],
  ["PL", "Warsaw"],
  ["RO", "Bucharest"],
  ["VN", "Hanoi"],
];

const DOCUMENTATION_NETWORKS = ["192.0.2", "198.51.100", "203.0.113"];
const ADMINISTRATORS = 3;
const ACCESS_POINTS = 6;
/** Every fourth person has a tablet. */
const TABLET_EVERY = 4;
/** Outsiders from this one on are the homes and hotels of employees; attackers are the first ones. */
const REMOTE_FROM = 120;

export const CAMERAS: readonly (readonly [camera: string, zone: string])[] = [
  ["Front gate", "perimeter"],
  ["Parking north", "parking"],
  ["Parking south", "parking"],
  ["Loading dock", "dock"],
  ["Reception", "lobby"],
  ["Corridor 1", "offices"],
  ["Corridor 2", "offices"],
  ["Server room", "server room"],
  ["Roof", "perimeter"],
  ["Back fence", "perimeter"],
];

export const DOORS: readonly (readonly [door: string, zone: string])[] = [
  ["Main entrance", "lobby"],
  ["Staff entrance", "offices"],
  ["Loading dock", "dock"],
  ["Server room", "server room"],
  ["Archive", "offices"],
  ["Workshop", "dock"],
  ["Emergency exit east", "perimeter"],
];

export const GATEWAY = { device: "gateway-1", ip: "10.20.0.1", wan: "192.0.2.1" };
export const RECORDER = "10.20.0.10";
export const BACKUP_SERVER = { host: "nas-1", ip: "10.20.0.20" };
export const TELEPHONE_SERVER = "10.20.0.30";
export const INTRANET = { host: "intranet", ip: "10.20.0.40" };

/** The device that the intruder of the scenario connects, and the server that it reports to. */
export const INTRUDER = { ip: "10.20.3.240", mac: "02:00:5e:66:06:66", server: "203.0.113.166" };

export function makeSite(random: Random): DemoSite {
  const fourth = DOCUMENTATION_NETWORKS.flatMap((network) =>
    Array.from({ length: 60 }, (_, nth) => outsider(`${network}.${4 + nth * 4}`, random)),
  );
  const sixth = Array.from({ length: 20 }, (_, nth) => outsider(`2001:db8:${(nth + 1).toString(16)}::17`, random));
  const outsiders = [...fourth, ...sixth];
  const people = NAMES.map((name, index): Person => {
    const user = name.toLowerCase().replace(" ", ".");
    return {
      user,
      name,
      extension: String(101 + index),
      badge: `B${String(4100 + index * 7)}`,
      laptop: personal("laptop", user, index, random),
      remote: outsiders[REMOTE_FROM + index]!,
    };
  });
  const phones = people.map(({ user }, index) => personal("phone", user, index, random));
  const tablets = people
    .filter((_, index) => index % TABLET_EVERY === 0)
    .map(({ user }, index) => personal("tablet", user, index, random));
  return {
    people,
    devices: [...people.map(({ laptop }) => laptop), ...phones, ...tablets],
    deskPhones: people.map(({ user, extension }, index) => ({
      host: `deskphone-${extension}`,
      ip: `10.20.3.${10 + index}`,
      mac: `02:00:5e:13:00:${hexByte(index)}`,
      user,
      uplink: `switch-${1 + (index % 2)}`,
    })),
    cameras: CAMERAS.map(([camera], index) => ({
      host: `camera-${camera.toLowerCase().replaceAll(" ", "-")}`,
      ip: `10.20.4.${10 + index}`,
      mac: `02:00:5e:14:00:${hexByte(index)}`,
      uplink: "switch-3",
    })),
    outsiders,
  };
}

const PERSONAL = {
  laptop: { network: 1, first: 10, mac: "10" },
  phone: { network: 2, first: 10, mac: "11" },
  tablet: { network: 2, first: 110, mac: "12" },
} as const;

function personal(kind: keyof typeof PERSONAL, user: string, index: number, random: Random): Device {
  const { network, first, mac } = PERSONAL[kind];
  return {
    host: `${kind}-${user.split(".")[0]!}`,
    ip: `10.20.${network}.${first + index}`,
    mac: `02:00:5e:${mac}:00:${hexByte(index)}`,
    user,
    uplink: `access-point-${random.between(1, ACCESS_POINTS)}`,
  };
}

export function outsider(ip: string, random: Random, score?: number): Outsider {
  const [country, city] = random.pick(PLACES);
  const abuse = score ?? (random.onceIn(3) ? random.between(40, 100) : random.between(0, 25));
  return { ip, enrichment: { geo: { country, city }, abuse_ipdb: { score: abuse } } };
}

/** The people who administer the gateway and handle the alerts. */
export function administrators({ people }: Pick<DemoSite, "people">): readonly Person[] {
  return people.slice(0, ADMINISTRATORS);
}

/** Picks a public address, the first ones far more often than the last. */
export function randomOutsider(site: DemoSite, random: Random): Outsider {
  const skewed = random.next() ** 3;
  return site.outsiders[Math.floor(skewed * site.outsiders.length)]!;
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, "0");
}
