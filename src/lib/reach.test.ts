import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalAddress, fourNumber, parseAddress } from "./ip.ts";
import { publicAddress, reachOf } from "./reach.ts";

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

test("the quick way to tell addresses of the internet agrees with the plain one", () => {
  fc.assert(
    fc.property(address, (text) => {
      const plain = reachOf(text) === "public" ? canonicalAddress(text) : undefined;
      expect(publicAddress(text)).toBe(plain);
    }),
    { numRuns: 2000 },
  );
});

test("a dotted address is the same number by either way, and anything else is none", () => {
  const text = fc.oneof(
    fc.ipV4(),
    fc.string({ unit: fc.constantFrom(..."0123456789. "), maxLength: 16 }),
    fc.constantFrom("1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "1..3.4", "1.2.3.4.", "", "0.0.0.0"),
  );
  fc.assert(
    fc.property(text, (given) => {
      const plain = parseAddress(given);
      expect(fourNumber(given)).toBe(plain === undefined ? undefined : Number(plain & 0xffffffffn));
    }),
    { numRuns: 2000 },
  );
});
