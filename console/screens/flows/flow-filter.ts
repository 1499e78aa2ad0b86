import type { FlowFilter } from "../../data/flows.ts";

// The filter of the screen, as the address has it, and what a person may type into it.

export const FILTER_NAMES = ["host", "src", "dst", "port", "protocol", "exporter"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];
export type FilterSearch = { readonly [Name in FilterName]?: string | undefined };

export const FILTER_WORDS: Record<FilterName, string> = {
  host: "host",
  src: "from",
  dst: "to",
  port: "port",
  protocol: "protocol",
  exporter: "exporter",
};

/** By IANA number, where people know the name. */
const PROTOCOLS: Readonly<Record<string, number>> = {
  icmp: 1,
  igmp: 2,
  tcp: 6,
  udp: 17,
  gre: 47,
  esp: 50,
  ah: 51,
  icmpv6: 58,
  ospf: 89,
  sctp: 132,
};

export function protocolName(protocol: string): string {
  return (
    Object.keys(PROTOCOLS)
      .find((name) => String(PROTOCOLS[name]) === protocol)
      ?.toUpperCase() ?? protocol
  );
}

const ADDRESS = /^[0-9a-f:.]+(\/\d{1,3})?$/i;

function isAddress(text: string): boolean {
  return ADDRESS.test(text) && (text.includes(".") || text.includes(":"));
}

function readValue(name: FilterName, text: string): string | undefined {
  switch (name) {
    case "port": {
      const port = Number(text);
      return /^\d{1,5}$/.test(text) && port <= 65_535 ? String(port) : undefined;
    }
    case "protocol": {
      const number =
        PROTOCOLS[text.toLowerCase()] ?? (/^\d{1,3}$/.test(text) && Number(text) <= 255 ? Number(text) : undefined);
      return number === undefined ? undefined : String(number);
    }
    default:
      return isAddress(text) ? text : undefined;
  }
}

const WORDS: Readonly<Record<string, FilterName>> = {
  host: "host",
  from: "src",
  src: "src",
  to: "dst",
  dst: "dst",
  port: "port",
  protocol: "protocol",
  exporter: "exporter",
};

/** `10.0.0.7`, `port 443`, `from 10.0.0.0/8`, `udp`. Undefined if it is none of these. */
export function parseFilterText(text: string): FilterSearch | undefined {
  const [first = "", ...rest] = text.trim().split(/[\s=]+/);
  const named = WORDS[first.toLowerCase()];
  if (named !== undefined && rest.length === 1) {
    const value = readValue(named, rest[0]!);
    return value === undefined ? undefined : { [named]: value };
  }
  if (rest.length > 0) return undefined;
  for (const name of ["host", "protocol", "port"] as const) {
    // A bare number is a port: protocols are known by name.
    if (name === "protocol" && /^\d+$/.test(first)) continue;
    const value = readValue(name, first);
    if (value !== undefined) return { [name]: value };
  }
  return undefined;
}

export function toFlowFilter({ host, src, dst, port, protocol, exporter }: FilterSearch): FlowFilter {
  return {
    host,
    src_ip: src,
    dst_ip: dst,
    port: port === undefined ? undefined : Number(port),
    protocol: protocol === undefined ? undefined : Number(protocol),
    exporter,
  };
}
