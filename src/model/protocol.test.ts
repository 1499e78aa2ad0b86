import { expect, test } from "vitest";
import { protocolName } from "./protocol.ts";

test("each protocol has its assigned number", () => {
  const known = {
    0: "HOPOPT",
    1: "ICMP",
    2: "IGMP",
    6: "TCP",
    17: "UDP",
    41: "IPv6",
    47: "GRE",
    50: "ESP",
    51: "AH",
    58: "IPv6-ICMP",
    88: "EIGRP",
    89: "OSPFIGP",
    103: "PIM",
    112: "VRRP",
    115: "L2TP",
    132: "SCTP",
    136: "UDPLite",
    142: "Ethernet",
    146: "BIT-EMU",
  };
  for (const [number, name] of Object.entries(known)) expect(protocolName(Number(number))).toBe(name);
});

test("a protocol without a name is shown as its number, and names are unique", () => {
  expect([61, 63, 99, 147, 200, 253, 255].map(protocolName)).toEqual(["61", "63", "99", "147", "200", "253", "255"]);
  expect(new Set(Array.from({ length: 256 }, (_, number) => protocolName(number))).size).toBe(256);
});
