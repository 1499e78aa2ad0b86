import { isIPv4 } from "node:net";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalAddress, fourNumber } from "./ip.ts";
import { publicAddress, addressScope } from "./address-scope.ts";

const edges = [
  "9.255.255.255",
  "10.0.0.0",
  "11.0.0.0",
  "100.63.255.255",
  "100.64.0.0",
  "172.15.255.255",
  "172.31.255.255",
];
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(...edges, "::1", "fe80::1%eth0", "::ffff:8.8.8.8", "::ffff:10.0.0.1", "224.0.0.0", "2001:db8::1"),
);

// The first and last address of each network, and their neighbours outside it.
const REACHES: readonly (readonly [string, ReturnType<typeof addressScope>])[] = [
  ["0.0.0.0", "nowhere"],
  ["0.255.255.255", "nowhere"],
  ["1.0.0.0", "public"],
  ["9.255.255.255", "public"],
  ["10.0.0.0", "private"],
  ["10.255.255.255", "private"],
  ["11.0.0.0", "public"],
  ["100.63.255.255", "public"],
  ["100.64.0.0", "private"],
  ["100.127.255.255", "private"],
  ["100.128.0.0", "public"],
  ["126.255.255.255", "public"],
  ["127.0.0.0", "private"],
  ["127.255.255.255", "private"],
  ["128.0.0.0", "public"],
  ["169.253.255.255", "public"],
  ["169.254.0.0", "private"],
  ["169.254.255.255", "private"],
  ["169.255.0.0", "public"],
  ["172.15.255.255", "public"],
  ["172.16.0.0", "private"],
  ["172.31.255.255", "private"],
  ["172.32.0.0", "public"],
  ["191.255.255.255", "public"],
  ["192.0.0.0", "reserved"],
  ["192.0.0.255", "reserved"],
  ["192.0.1.0", "public"],
  ["192.0.1.255", "public"],
  ["192.0.2.0", "reserved"],
  ["192.0.2.255", "reserved"],
  ["192.0.3.0", "public"],
  ["192.88.98.255", "public"],
  ["192.88.99.0", "reserved"],
  ["192.88.99.255", "reserved"],
  ["192.88.100.0", "public"],
  ["192.167.255.255", "public"],
  ["192.168.0.0", "private"],
  ["192.168.255.255", "private"],
  ["192.169.0.0", "public"],
  ["198.17.255.255", "public"],
  ["198.18.0.0", "reserved"],
  ["198.19.255.255", "reserved"],
  ["198.20.0.0", "public"],
  ["198.51.99.255", "public"],
  ["198.51.100.0", "reserved"],
  ["198.51.100.255", "reserved"],
  ["198.51.101.0", "public"],
  ["203.0.112.255", "public"],
  ["203.0.113.0", "reserved"],
  ["203.0.113.255", "reserved"],
  ["203.0.114.0", "public"],
  ["223.255.255.255", "public"],
  ["224.0.0.0", "nowhere"],
  ["239.255.255.255", "nowhere"],
  ["240.0.0.0", "nowhere"],
  ["255.255.255.255", "nowhere"],
  ["::", "nowhere"],
  ["::1", "private"],
  ["::2", "reserved"],
  ["::ffff:ffff", "reserved"],
  ["::1:0:0", "public"],
  ["::fffe:ffff:ffff:ffff", "public"],
  ["::ffff:0:0:0", "reserved"],
  ["::ffff:0:ffff:ffff", "reserved"],
  ["::ffff:1:0:0", "public"],
  ["64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["64:ff9b::", "reserved"],
  ["64:ff9b::ffff:ffff", "reserved"],
  ["64:ff9b::1:0:0", "public"],
  ["64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "public"],
  ["64:ff9b:1::", "reserved"],
  ["64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["64:ff9b:2::", "public"],
  ["ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["100::", "reserved"],
  ["100::ffff:ffff:ffff:ffff", "reserved"],
  ["100:0:0:1::", "public"],
  ["2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["2001::", "reserved"],
  ["2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["2001:200::", "public"],
  ["2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["2001:db8::", "reserved"],
  ["2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["2001:db9::", "public"],
  ["2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["2002::", "reserved"],
  ["2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["2003::", "public"],
  ["3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["3fff::", "reserved"],
  ["3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["3fff:1000::", "public"],
  ["5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["5f00::", "reserved"],
  ["5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["5f01::", "public"],
  ["fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["fc00::", "private"],
  ["fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private"],
  ["fe00::", "public"],
  ["fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "public"],
  ["fe80::", "private"],
  ["febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private"],
  ["fec0::", "private"],
  ["feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private"],
  ["ff00::", "nowhere"],
  ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "nowhere"],
  // IPv4 addresses embedded in IPv6: mapped ones count as themselves, other forms are never public.
  ["::ffff:8.8.8.8", "public"],
  ["::ffff:808:808", "public"],
  ["::ffff:10.0.0.1", "private"],
  ["::FFFF:A00:1", "private"],
  ["0:0:0:0:0:ffff:7f00:1", "private"],
  ["::ffff:169.254.169.254", "private"],
  ["::ffff:100.64.0.1", "private"],
  ["::ffff:198.18.0.1", "reserved"],
  ["::ffff:0.0.0.0", "nowhere"],
  ["::127.0.0.1", "reserved"],
  ["::8.8.8.8", "reserved"],
  ["::ffff:0:127.0.0.1", "reserved"],
  ["64:ff9b::127.0.0.1", "reserved"],
  ["64:ff9b:1::10.0.0.1", "reserved"],
  ["2002:7f00:1::", "reserved"],
  ["fe80::1%eth0", "private"],
];

test.each(REACHES)("%s is %s", (text, reach) => {
  expect(addressScope(text)).toBe(reach);
  expect(publicAddress(text)).toBe(reach === "public" ? canonicalAddress(text) : undefined);
});

test("the fast test for public addresses agrees with the classification", () => {
  fc.assert(
    fc.property(address, (text) => {
      const plain = addressScope(text) === "public" ? canonicalAddress(text) : undefined;
      expect(publicAddress(text)).toBe(plain);
    }),
    { numRuns: 2000 },
  );
});

test("a dotted address is the number of its four parts; other texts give undefined", () => {
  const text = fc.oneof(
    fc.ipV4(),
    fc.string({ unit: fc.constantFrom(..."0123456789. "), maxLength: 16 }),
    fc.constantFrom("1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "1..3.4", "1.2.3.4.", "", "0.0.0.0"),
  );
  fc.assert(
    fc.property(text, (given) => {
      const plain = isIPv4(given)
        ? given.split(".").reduce((number, part) => number * 256 + Number(part), 0)
        : undefined;
      expect(fourNumber(given)).toBe(plain);
    }),
    { numRuns: 2000 },
  );
});
