import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalNumber, mayHoldLarge, parseExact, parseSent } from "./exact-json.ts";

describe("JSON with exact numbers", () => {
  test.each<[string, unknown]>([
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n],
    ["-9007199254740993", -9007199254740993n],
    ["18446744073709551615", 18446744073709551615n],
    ["1152921504606847000", 1152921504606847000n],
    ["123456789012345678.0", 123456789012345678n],
    ["1e23", 10n ** 23n],
    ["-1.5E+16", -15_000_000_000_000_000n],
    ["1e308", 10n ** 308n],
    [`1${"0".repeat(200)}`, 10n ** 200n],
    ["0.00001e25", 10n ** 20n],
    ["0.1", 0.1],
    ["1E5", 100_000],
    ["1700000000.123456789", 1700000000.1234567],
    ["0.12345678901234567890", 0.12345678901234568],
    ["9007199254740991.25", 9007199254740991],
    ["1e-400", 0],
    ["0e999", 0],
  ])("%s is read exactly, or as the nearest double if it has a fraction", (token, value) => {
    expect(parseSent(token)).toBe(value);
    expect(parseSent(`{"a": [${token}]}`)).toEqual({ a: [value] });
  });

  test.each(["1e400", "-1E+400", "12345678901234567.5", `1${"0".repeat(309)}`])(
    "%s, which fits neither a double nor an integer, is kept as text",
    (token) => {
      expect(parseSent(token)).toBe(token);
      expect(parseSent(`[ ${token} ]`)).toEqual([token]);
    },
  );

  test("an integer round-trips digit by digit, wherever it is", () => {
    const texts = ['{"id":18446744073709551615,"a":[-9007199254740993,{"b":1}]}', "123456789012345678901234567890"];
    for (const text of texts) expect(JSON.stringify(parseExact(text))).toBe(text);
  });

  test("any integer, anywhere in any text, is found", () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.string({ maxLength: 40 }), fc.string({ maxLength: 40 }), (number, before, after) => {
        const value = { [before]: [before, canonicalNumber(number), after], n: canonicalNumber(number) };
        expect(parseExact(JSON.stringify(value))).toEqual(value);
        expect(parseSent(JSON.stringify(value, null, 1))).toEqual(value);
      }),
      { numRuns: 1000 },
    );
  });

  test("any double is read as itself", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        const read = parseExact(JSON.stringify(number)) as number | bigint;
        expect(Number(read)).toBe(number + 0);
        expect(typeof read).toBe(Math.abs(number) > Number.MAX_SAFE_INTEGER ? "bigint" : "number");
      }),
    );
  });

  test("quoted ids, fractions and Suricata's flow ids take the fast path", () => {
    const text = '{"id":"12345678901234567890","x":0.12345678901234567,"flow_id":2247553214893543,"t":"2026+0000"}';
    expect(mayHoldLarge(text)).toBe(false);
    expect(mayHoldLarge('{"a":22475532148935431}')).toBe(true);
  });

  test("a lone surrogate becomes U+FFFD in keys and values; pairs and escaped backslashes are kept", () => {
    const text = String.raw`{"a\udc00":"\ud800x","b":"\uDFFF\uD83D\uDE00","c":"\\ud800","d":"\\\ud800","e":"😀"}`;
    expect(parseSent(text)).toEqual({
      "a\ufffd": "\ufffdx",
      b: "\ufffd😀",
      c: String.raw`\ud800`,
      d: "\\\ufffd",
      e: "😀",
    });
    expect(parseSent('"\ud800"')).toBe("\ufffd");
  });

  test("__proto__ stays plain data beside a large integer", () => {
    const read = parseExact('{"__proto__":{"polluted":18446744073709551615}}') as object;
    expect(Object.keys(read)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});
