import type { NetworkInterfaceInfo } from "node:os";
import { expect, test } from "vitest";
import { ownAddresses, reachableAt } from "./own-addresses.ts";

const info = (address: string, internal = false) =>
  ({ address, internal, family: address.includes(":") ? "IPv6" : "IPv4" }) as NetworkInterfaceInfo;

const own = ownAddresses({
  lo: [info("127.0.0.1", true), info("::1", true)],
  eth0: [info("2001:db8::5"), info("fe80::1"), info("10.0.0.5")],
  eth1: [info("169.254.7.7"), info("192.0.2.9")],
});

test("the addresses of interfaces are listed, IPv4 first, without loopback and link-local ones", () => {
  expect(own).toEqual([
    { address: "10.0.0.5", family: "ipv4", interface: "eth0" },
    { address: "192.0.2.9", family: "ipv4", interface: "eth1" },
    { address: "2001:db8::5", family: "ipv6", interface: "eth0" },
  ]);
});

test.each([
  ["0.0.0.0", ["10.0.0.5", "192.0.2.9"]],
  ["::", ["10.0.0.5", "192.0.2.9", "2001:db8::5"]],
  ["127.0.0.1", []],
  ["127.1.2.3", []],
  ["::1", []],
  ["localhost", []],
  ["192.0.2.9", ["192.0.2.9"]],
  ["gateway.example", ["gateway.example"]],
])("a listener on %s is reached at %j", (bound, expected) => {
  expect(reachableAt(bound, own)).toEqual(expected);
});
