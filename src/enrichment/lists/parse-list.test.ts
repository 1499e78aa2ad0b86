import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isInRanges, parseCidr } from "../../lib/ip.ts";
import { parseList } from "./parse-list.ts";
import { addressNumbers, hasAddress, hasName, type ListTable } from "./list-table.ts";

const has = (table: ListTable, text: string) => hasAddress(table, addressNumbers(text)!);

describe("a line of a list", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["192.0.2.0/24", "192.0.2.255"],
    ["192.0.2.1-192.0.2.9", "192.0.2.5"],
    ["1.10.16.0 - 1.10.31.255 ; SBL256894", "1.10.20.7"],
    ["192.0.2.1 - 192.0.2.9, the old ones", "192.0.2.5"],
    ["0.0.0.0 - 0.255.255.255", "0.1.2.3"],
    ["2001:db8:: - 2001:db8::ff", "2001:db8::7"],
    ["64.62.197.0\t64.62.197.255\t24\t4310\tHURRICANE\tUS\tabuse@example.net", "64.62.197.200"],
    ['"192.0.2.0","192.0.2.127","AT"', "192.0.2.100"],
    ["192.0.2.7 - seen in May", "192.0.2.7"],
    ["192.0.2.7 - 5 times", "192.0.2.7"],
    ["2001:db8::/32", "2001:db8:ffff::1"],
    ["2001:DB8:0::1", "2001:db8::1"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["192.0.2.7\tseen in May", "192.0.2.7"],
    ["192.0.2.7 # a comment", "192.0.2.7"],
    ["192.0.2.0/24 ; SBL1", "192.0.2.1"],
    ['"192.0.2.7","a","b"', "192.0.2.7"],
    ["  192.0.2.7\r", "192.0.2.7"],
    ["\uFEFF192.0.2.7", "192.0.2.7"],
  ])("%j has the address %s", (line, address) => {
    const { table, badLines } = parseList(line);
    expect([has(table, address), badLines]).toEqual([true, 0]);
  });

  test.each([
    ["evil.example", "evil.example"],
    ["evil.example", "a.b.evil.example"],
    ["EVIL.Example.", "evil.example"],
    ["*.evil.example", "x.evil.example"],
    ["0.0.0.0 evil.example", "evil.example"],
    ["127.0.0.1\tother.example evil.example # both", "evil.example"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["_dmarc.evil.example", "_dmarc.evil.example"],
  ])("%j has the domain %s", (line, name) => {
    const { table, badLines } = parseList(line);
    expect([hasName(table, name), badLines]).toEqual([true, 0]);
  });

  test("with a domain matches neither similar names nor parent domains", () => {
    const { table } = parseList("evil.example\n0.0.0.0 blocked.example");
    const not = ["notevil.example", "evil.example.org", "example", "vil.example", "evil-example", "ample"];
    expect(not.filter((name) => hasName(table, name))).toEqual([]);
    expect(has(table, "0.0.0.0")).toBe(false);
  });

  test("with a range matches exactly the addresses in it, and counts as one network", () => {
    const { table, networks, addresses } = parseList("192.0.2.16 - 192.0.2.18 ; x\n198.51.100.0\t198.51.100.255\t24");
    const asked = ["192.0.2.15", "192.0.2.16", "192.0.2.18", "192.0.2.19", "198.51.99.255", "198.51.100.255"];
    expect(asked.filter((address) => has(table, address))).toEqual(["192.0.2.16", "192.0.2.18", "198.51.100.255"]);
    expect([networks, addresses]).toEqual([2, 0]);
  });

  test("of a hosts file that maps an address to itself is valid", () => {
    expect(parseList("0.0.0.0 0.0.0.0")).toMatchObject({ badLines: 0, addresses: 0 });
  });

  test("that is empty, a comment or an entry for the machine itself is valid and has no entry", () => {
    const { badLines, addresses, networks, domains } = parseList(
      "\n  \r\n# x\n; y\n// z\n127.0.0.1 localhost\n::1 ip6-loopback",
    );
    expect([badLines, addresses, networks, domains]).toEqual([0, 0, 0, 0]);
  });

  test.each([
    "example",
    "1.2.3",
    "300.1.2.3",
    "1.2.3.4/33",
    "9.9.9.9-1.1.1.1",
    "9.9.9.9 - 1.1.1.1",
    "192.0.2.1 - 2001:db8::1",
    "8.8.8.8\t192.0.2.1",
    "192.0.2.0 255.255.255.0",
    "<html>",
    "http://evil.example/",
    "a..b",
    "\0\x01",
    "\uFFFD\uFFFD",
  ])("%j is counted as invalid, and the other lines are kept", (line) => {
    const { badLines, badSample, addresses } = parseList(`192.0.2.1\n${line}\n192.0.2.2`);
    expect([badLines, badSample, addresses]).toEqual([1, line, 2]);
  });
});

describe("a table", () => {
  const four = fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]) => `10.0.${a & 3}.${b}`);
  const six = fc.tuple(fc.nat(3), fc.nat(0xffff)).map(([a, b]) => `2001:db8::${a}:${b.toString(16)}`);
  const range = fc.oneof(
    four,
    six,
    fc.tuple(four, fc.integer({ min: 20, max: 32 })).map(([address, bits]) => `${address}/${bits}`),
    fc.tuple(six, fc.integer({ min: 100, max: 128 })).map(([address, bits]) => `${address}/${bits}`),
  );
  const label = fc.constantFrom("a", "b", "c", "bb");
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join(".")}.example`);

  test("has the same addresses as a naive evaluation", () => {
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 30 }),
        fc.array(fc.oneof(four, six), { maxLength: 30 }),
        (lines, asked) => {
          const { table } = parseList(lines.join("\n"));
          const ranges = lines.map((line) => parseCidr(line)!);
          for (const address of asked) expect(has(table, address)).toBe(isInRanges(ranges, address));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("has the same names as a naive evaluation", () => {
    fc.assert(
      fc.property(fc.array(name, { maxLength: 20 }), fc.array(name, { maxLength: 20 }), (lines, asked) => {
        const { table, domains } = parseList(lines.join("\n"));
        expect(domains).toBe(new Set(lines).size);
        for (const each of asked)
          expect(hasName(table, each)).toBe(lines.some((line) => each === line || each.endsWith(`.${line}`)));
      }),
      { numRuns: 300 },
    );
  });

  test("has a limit on entries and counts those beyond it", () => {
    const lines = Array.from({ length: 105 }, (_, i) => (i % 2 === 0 ? `192.0.2.${i}` : `n${i}.example`));
    const { addresses, domains, leftOut, table } = parseList([...lines, lines[1], lines[0]].join("\n"), 100);
    expect([addresses, domains, leftOut]).toEqual([50, 50, 6]);
    expect([has(table, "192.0.2.98"), has(table, "192.0.2.100")]).toEqual([true, false]);
  });
});
