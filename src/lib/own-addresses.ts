import { networkInterfaces } from "node:os";
import { isIP } from "node:net";
import { parseAddress, parseCidr } from "./ip.ts";

// The addresses of this machine, and those at which a listener can be reached from elsewhere.

/** A machine that runs containers has one interface for each of them. */
const ADDRESSES_MAX = 64;

export interface OwnAddress {
  readonly address: string;
  readonly family: "ipv4" | "ipv6";
  readonly interface: string;
}

/** Valid on one link only, so that another machine cannot simply be told to send there. */
const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"].map((network) => parseCidr(network)!);

/** The addresses of the network interfaces, IPv4 first, without loopback and link-local ones. */
export function ownAddresses(interfaces = networkInterfaces()): OwnAddress[] {
  const found = Object.entries(interfaces).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ internal, address }) => !internal && !isLinkLocal(address))
      .map(({ address, family }): OwnAddress => {
        return { address, family: family === "IPv6" ? "ipv6" : "ipv4", interface: name };
      }),
  );
  const first = found.filter(({ family }) => family === "ipv4");
  return [...first, ...found.filter(({ family }) => family === "ipv6")].slice(0, ADDRESSES_MAX);
}

/** The addresses at which others reach a listener that is bound to `bound`; none if it listens on loopback only. */
export function reachableAt(bound: string, own: readonly OwnAddress[]): string[] {
  if (bound === "0.0.0.0") return own.filter(({ family }) => family === "ipv4").map(({ address }) => address);
  // Node's sockets on :: take IPv4 too, except where the system separates them.
  if (bound === "::") return own.map(({ address }) => address);
  if (bound === "localhost" || isLoopback(bound)) return [];
  return [bound];
}

function isLoopback(text: string): boolean {
  return isIP(text) !== 0 && isWithin(text, LOOPBACK);
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"].map((network) => parseCidr(network)!);

function isLinkLocal(text: string): boolean {
  return isWithin(text, LINK_LOCAL);
}

function isWithin(text: string, networks: readonly { from: bigint; to: bigint }[]): boolean {
  const value = parseAddress(text);
  return value !== undefined && networks.some(({ from, to }) => value >= from && value <= to);
}
