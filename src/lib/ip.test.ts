import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalAddress, clientNetwork, formatAddress, isLoopback, parseAddress } from "./ip.ts";

test("an address has one canonical spelling", () => {
  const spelled = (text: string) => formatAddress(parseAddress(text)!);
  expect(spelled("10.0.0.1")).toBe("10.0.0.1");
  expect(spelled("255.255.255.255")).toBe("255.255.255.255");
  expect(spelled("::ffff:192.0.2.7")).toBe("192.0.2.7");
  expect(spelled("::192.0.2.7")).toBe("::c000:207");
  expect(canonicalAddress("::192.0.2.7")).toBe("::c000:207");
  expect(canonicalAddress("::192.0.2.7%eth0")).toBe("::c000:207");
  expect(spelled("0:0:0:0:0:0:0:1")).toBe("::1");
  expect(spelled("::")).toBe("::");
  expect(spelled("2001:DB8:0:1:0:0:0:1")).toBe("2001:db8:0:1::1");
  expect(spelled("2001:db8:0:0:1:0:0:1")).toBe("2001:db8::1:0:0:1");
  expect(spelled("1:2:3:4:5:6:7:0")).toBe("1:2:3:4:5:6:7:0");
});

test("the number and the spelling of an address convert into each other", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      expect(formatAddress(parseAddress(text)!)).toBe(canonicalAddress(text));
    }),
  );
  // The URL parser of the platform is an independent implementation, but leaves mapped IPv4 addresses in hexadecimal.
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const { hostname } = new URL(`http://[${text}]/`);
      const expected = hostname.slice(1, -1);
      if (!expected.startsWith("::ffff:")) expect(canonicalAddress(text)).toBe(expected);
    }),
  );
  const group = fc.oneof(fc.constant(0n), fc.bigInt(0n, 0xffffn));
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const value = groups.reduce((sum, item) => (sum << 16n) | item, 0n);
      expect(parseAddress(formatAddress(value))).toBe(value);
    }),
  );
});

test("zones are dropped, and other texts are not addresses", () => {
  expect(canonicalAddress("fe80::1%eth0")).toBe("fe80::1");
  expect(canonicalAddress("::ffff:192.0.2.7%1")).toBe("192.0.2.7");
  expect(canonicalAddress("64:ff9b::192.0.2.7")).toBe("64:ff9b::c000:207");
  const others = [
    "",
    "%",
    "1.2.3",
    "1.2.3.4%eth0",
    "01.2.3.4",
    "0x7f.0.0.1",
    "1.2.3.256",
    "::1%",
    "::192.0.2",
    "1:2:3:4:5:6:7:8:9",
    "::g",
  ];
  for (const text of others) {
    expect([parseAddress(text), canonicalAddress(text)], text).toEqual([undefined, undefined]);
  }
});

test("a client is an IPv4 address, however it is spelled, or an IPv6 /64", () => {
  expect(clientNetwork("192.0.2.7")).toBe("192.0.2.7");
  expect(clientNetwork("2001:db8::1")).toBe(clientNetwork("2001:db8:0:0:ffff::2"));
  expect(clientNetwork("2001:db8::1")).not.toBe(clientNetwork("2001:db8:0:1::1"));
  expect(clientNetwork("::ffff:192.0.2.7")).not.toBe(clientNetwork("::ffff:192.0.2.8"));
  expect(clientNetwork("::ffff:192.0.2.7")).toBe("192.0.2.7");
  expect(clientNetwork("no address")).toBe("no address");
});

test("loopback is 127.0.0.0/8 and ::1, in any spelling", () => {
  for (const address of ["127.0.0.1", "127.8.9.10", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"]) {
    expect(isLoopback(address), address).toBe(true);
  }
  for (const address of ["128.0.0.1", "10.127.0.1", "::2", "::127.0.0.1", "", "no address"]) {
    expect(isLoopback(address), address).toBe(false);
  }
});
