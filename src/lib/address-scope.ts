import { BlockList, isIPv6 } from "node:net";
import { canonicalAddress, formatGroups, fourNumber, parseCidr, sixGroups } from "./ip.ts";

// Classifies addresses: public ones, and those that are only valid locally.

/**
 * `private`: valid only within a network. `reserved`: not assigned to hosts of the internet, or embeds another
 * address. `nowhere`: cannot be the address of a host.
 */
type AddressScope = "public" | "private" | "reserved" | "nowhere";

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split("/") as [string, string];
    list.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

const NOWHERE_NETWORKS = ["0.0.0.0/8", "224.0.0.0/3", "::/128", "ff00::/8"];
const PRIVATE_NETWORKS = [
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "::1/128",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
];
const RESERVED_NETWORKS = [
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "::/96",
  "::ffff:0:0:0/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
  "5f00::/16",
];

const NOWHERE = listOf(NOWHERE_NETWORKS);
const PRIVATE = listOf(PRIVATE_NETWORKS);
const RESERVED = listOf(RESERVED_NETWORKS);

/** The first and last address of each IPv4 network that is not public, as numbers. */
const NOT_PUBLIC_FOUR = new Uint32Array(
  [...NOWHERE_NETWORKS, ...PRIVATE_NETWORKS, ...RESERVED_NETWORKS]
    .filter((network) => !network.includes(":"))
    .map((network) => parseCidr(network)!)
    .flatMap(({ from, to }) => [Number(from & 0xffffffffn), Number(to & 0xffffffffn)]),
);

/** The text must be an address. */
export function addressScope(text: string): AddressScope {
  const address = canonicalAddress(text)!;
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (NOWHERE.check(address, family)) return "nowhere";
  if (PRIVATE.check(address, family)) return "private";
  return RESERVED.check(address, family) ? "reserved" : "public";
}

/** The base and mask of each IPv6 network that is not public. */
const NOT_PUBLIC_SIX = [...NOWHERE_NETWORKS, ...PRIVATE_NETWORKS, ...RESERVED_NETWORKS]
  .filter((network) => network.includes(":"))
  .map((network) => {
    const [address, bits] = network.split("/") as [string, string];
    const mask = Uint16Array.from(
      { length: 8 },
      (_, i) => 0xffff << Math.max(0, 16 - Math.max(0, Number(bits) - 16 * i)),
    );
    return { base: sixGroups(address)!, mask };
  });

/** The canonical spelling of a public address; undefined for any other text. */
export function publicAddress(text: string): string | undefined {
  const four = fourNumber(text);
  if (four !== undefined) {
    for (let i = 0; i < NOT_PUBLIC_FOUR.length; i += 2) {
      if (four >= NOT_PUBLIC_FOUR[i]! && four <= NOT_PUBLIC_FOUR[i + 1]!) return undefined;
    }
    return text;
  }
  const six = sixGroups(text);
  // An address that begins with zeros may be a mapped IPv4 address.
  if (six === undefined || six[0] === 0) {
    const address = canonicalAddress(text);
    return address !== undefined && addressScope(address) === "public" ? address : undefined;
  }
  for (const { base, mask } of NOT_PUBLIC_SIX) if (isWithin(six, base, mask)) return undefined;
  return formatGroups(six);
}

function isWithin(groups: Uint16Array, base: Uint16Array, mask: Uint16Array): boolean {
  for (let i = 0; i < 8; i++) if ((groups[i]! & mask[i]!) !== base[i]) return false;
  return true;
}
