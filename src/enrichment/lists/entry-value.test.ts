import { expect, test } from "vitest";
import { parseEntryValue, readEntryLines } from "./entry-value.ts";
import { parseList } from "./parse-list.ts";

test.each([
  ["192.0.2.7", "192.0.2.7", "address"],
  ["::ffff:192.0.2.7", "192.0.2.7", "address"],
  ["2001:DB8:0:0::1", "2001:db8::1", "address"],
  ["192.0.2.7/24", "192.0.2.0/24", "network"],
  ["192.0.2.7/32", "192.0.2.7", "address"],
  ["0.0.0.0/0", "0.0.0.0/0", "network"],
  ["2001:db8::1/32", "2001:db8::/32", "network"],
  ["::/0", "::/0", "network"],
  ["192.0.2.1-192.0.2.9", "192.0.2.1-192.0.2.9", "range"],
  ["192.0.2.0 - 192.0.2.255", "192.0.2.0/24", "network"],
  ["Evil.Example.", "evil.example", "domain"],
  ["*.evil.example", "evil.example", "domain"],
  ["münchen.example", "xn--mnchen-3ya.example", "domain"],
])("%s is %s, a %s, which a list can read again", (text, value, type) => {
  expect(parseEntryValue(text)).toEqual({ value, type });
  expect(parseEntryValue(value)).toEqual({ value, type });
  expect(parseList(value)).toMatchObject({
    addresses: type === "address" ? 1 : 0,
    networks: type === "network" || type === "range" ? 1 : 0,
    domains: type === "domain" ? 1 : 0,
    badLines: 0,
  });
});

test.each(["", "localhost", "192.0.2.256", "192.0.2.0/33", "192.0.2.9-192.0.2.1", "a b.example", "x".repeat(5000)])(
  "%j is no entry",
  (text) => {
    expect(parseEntryValue(text)).toBeUndefined();
  },
);

test("lines are read as in files, and comments become notes", () => {
  const text = [
    "\uFEFF# a comment",
    "192.0.2.7   # the scanner",
    "192.0.2.1 - 192.0.2.9 ; a range",
    "198.51.100.0 198.51.100.255",
    "0.0.0.0 bad.example localhost worse.example",
    "evil.example,malware,2026-01-01",
    "not an entry",
    "192.0.2.7 192.0.2.9",
    "",
  ].join("\n");
  const lines = [...readEntryLines(text)];
  const values = lines.flatMap(({ line, values: found, note }) => found.map(({ value }) => [line, value, note]));
  const bad = lines.filter((line) => line.bad !== null);
  expect(values).toEqual([
    [2, "192.0.2.7", "the scanner"],
    [3, "192.0.2.1-192.0.2.9", "a range"],
    [4, "198.51.100.0/24", null],
    [5, "bad.example", null],
    [5, "worse.example", null],
    [6, "evil.example", null],
  ]);
  expect(bad).toMatchObject([
    { line: 7, bad: "not an entry" },
    { line: 8, bad: "192.0.2.7 192.0.2.9" },
  ]);
  const { addresses, networks, domains, badLines } = parseList(text);
  expect({ entries: addresses + networks + domains, badLines }).toEqual({
    entries: values.length,
    badLines: bad.length,
  });
});
