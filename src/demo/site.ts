import type { JsonObject } from "../model/event.ts";
import type { Random } from "./random.ts";

// The fictional demo site: one building with offices, a yard and a loading dock. Public addresses are reserved for documentation
// and telephone numbers for fiction, so no real person or network appears.

interface Person {
  readonly user: string;
  readonly name: string;
  readonly extension: string;
  readonly badge: string;
}

interface Device {
  readonly host: string;
  readonly ip: string;
  readonly mac: string;
  readonly user: string;
}

export interface Outsider {
  readonly ip: string;
  readonly enrichment: JsonObject;
}

export interface DemoSite {
  readonly people: readonly Person[];
  readonly devices: readonly Device[];
  /** Public addresses; a few of them cause most of the events. */
  readonly outsiders: readonly Outsider[];
}

const NAMES = (
  "Ada Morin, Ben Okafor, Carla Weiss, Dmitri Volkov, Elena Rossi, Farid Haddad, Grace Lindqvist, Hugo Marchand, Ines Carvalho, " +
  "Jonas Keller, Kaya Demir, Liam Byrne, Mei Tanaka, Noor Rahman, Olga Petrova, Pablo Serrano, Quentin Roy, Rosa Jimenez, " +
  "Sven Nilsen, Tara Singh, Uma Pillai, Viktor Horvat, Wanda Kowalska, Xavier Dupont, Yara Mansour, Zoe Fischer"
).split(", ");

const DEVICE_KINDS = ["laptop", "phone", "tablet", "printer", "sensor", "desktop"];

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
const DEVICES_PER_PERSON = 3;

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

export function makeSite(random: Random): DemoSite {
  const people = NAMES.map((name, index) => ({
    user: name.toLowerCase().replace(" ", "."),
    name,
    extension: String(101 + index),
    badge: `B${String(4100 + index * 7)}`,
  }));
  const devices = people.flatMap(({ user }, person) =>
    Array.from({ length: DEVICES_PER_PERSON }, (_, nth) => {
      const number = person * DEVICES_PER_PERSON + nth;
      const kind = DEVICE_KINDS[number % DEVICE_KINDS.length]!;
      return {
        host: `${kind}-${user.split(".")[0]!}`,
        ip: `10.20.${1 + (number % 4)}.${10 + Math.floor(number / 4)}`,
        mac: `02:00:5e:10:${hexByte(person)}:${hexByte(nth)}`,
        user,
      };
    }),
  );
  const fourth = DOCUMENTATION_NETWORKS.flatMap((network) =>
    Array.from({ length: 60 }, (_, nth) => outsider(`${network}.${4 + nth * 4}`, random)),
  );
  const sixth = Array.from({ length: 20 }, (_, nth) => outsider(`2001:db8:${(nth + 1).toString(16)}::17`, random));
  return { people, devices, outsiders: [...fourth, ...sixth] };
}

export function outsider(ip: string, random: Random, score?: number): Outsider {
  const [country, city] = random.pick(PLACES);
  const abuse = score ?? (random.onceIn(3) ? random.between(40, 100) : random.between(0, 25));
  return { ip, enrichment: { geo: { country, city }, abuse_ipdb: { score: abuse } } };
}

/** Picks a public address, the first ones far more often than the last. */
export function randomOutsider(site: DemoSite, random: Random): Outsider {
  const skewed = random.next() ** 3;
  return site.outsiders[Math.floor(skewed * site.outsiders.length)]!;
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, "0");
}
