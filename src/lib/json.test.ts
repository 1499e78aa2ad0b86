import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExact } from "./exact-json.ts";
import { findFaults, flawOf, isDeeperThan, parseJson, parseJsonText } from "./json.ts";

const DEPTH = 32;
const parse = (text: string, depthMax = DEPTH) => parseJsonText(text, { depthMax });
const faultsOf = (text: string, depthMax = DEPTH) => {
  const result = parse(text, depthMax);
  return result.kind === "faults" ? result.faults.map(({ field, message }) => `${field}: ${message}`) : [result.kind];
};
const nested = (levels: number, open = '{"a":', close = "}") => open.repeat(levels) + "1" + close.repeat(levels);

/** Unusual JSON texts: duplicate keys, spaces anywhere, lone surrogates, numbers of any length. */
const strangeText = fc.letrec<{ value: string; leaf: string; string: string }>((tie) => ({
  string: fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit: "binary", maxLength: 6 }).map((text) => JSON.stringify(text)) },
    fc.constantFrom('"\\ud800"', '"\\uD83D\\uDE00"', '"\\udfff x"', '"\\u0061"', '"a"', '"__proto__"', '"\\\\ud800"'),
  ),
  leaf: fc.oneof(
    tie("string"),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
    fc.maxSafeInteger().map(String),
    fc.bigInt().map(String),
    fc.constantFrom("true", "false", "null", "-0", "1.0", "1e400", "1e-400", "9007199254740993", "1E5", "1e23"),
  ),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc
      .tuple(fc.constantFrom("", " ", "\n\t"), fc.array(fc.tuple(tie("string"), tie("value")), { maxLength: 4 }))
      .map(
        ([space, entries]) =>
          `{${space}${entries.map(([key, value]) => `${key}${space}:${space}${value}`).join(`${space},`)}${space}}`,
      ),
  ),
})).value;

describe("strict JSON", () => {
  test("accepts any JSON value, compact or spaced out, and returns it unchanged", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const meant = parseExact(JSON.stringify(value));
        expect(parse(JSON.stringify(value))).toEqual({ kind: "value", value: meant });
        expect(parse(JSON.stringify(value, null, 2))).toEqual({ kind: "value", value: meant });
      }),
    );
  });

  test("the fast path accepts nothing that the thorough path refuses", () => {
    fc.assert(
      fc.property(strangeText, fc.integer({ min: 1, max: 5 }), (text, depthMax) => {
        const result = parse(text, depthMax);
        const faults = findFaults(text, { depthMax });
        expect(result.kind).toBe(faults.length > 0 ? "faults" : "value");
        const value = JSON.parse(text) as unknown;
        const tooDeep = `is nested deeper than ${depthMax} levels`;
        if (isDeeperThan(value, depthMax)) expect(faults.map(({ message }) => message)).toContain(tooDeep);
        if (result.kind === "faults") expect(isDeeperThan(result.value, depthMax)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test("an accepted value survives being written and read again", () => {
    fc.assert(
      fc.property(strangeText, (text) => {
        const result = parse(text);
        if (result.kind !== "value") return;
        expect(JSON.stringify(parseExact(JSON.stringify(result.value)))).toBe(JSON.stringify(result.value));
        expect(flawOf(result.value, DEPTH)).toBeUndefined();
        expect(JSON.stringify(result.value).includes("\\ud")).toBe(JSON.stringify(result.value).includes("\\\\ud"));
      }),
      { numRuns: 1000 },
    );
  });

  test("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(["value", "malformed", "faults"]).toContain(parseJson(Buffer.from(bytes), { depthMax: DEPTH }).kind);
      }),
    );
  });

  test("refuses a duplicate key with different values, with its path, however the key is spelled", () => {
    const twice = "is a duplicate key with another value";
    expect(faultsOf('{"a":1,"a":2}')).toEqual([`a: ${twice}`]);
    expect(faultsOf('{"a":1,"a":12}')).toEqual([`a: ${twice}`]);
    expect(faultsOf('{"a":12,"a":1}')).toEqual([`a: ${twice}`]);
    expect(faultsOf('{"a":{"b":1},"a":{"b":1,"c":2}}')).toEqual([`a: ${twice}`]);
    expect(faultsOf('{"x":[{"a":1,"\\u0061":2}]}')).toEqual([`x[0].a: ${twice}`]);
    expect(faultsOf('{"\\ud800":1,"\\udfff":2}')).toEqual([`\ufffd: ${twice}`]);
    const many = Array.from({ length: 50 }, (_, i) => `"k${i}":0`).join();
    expect(faultsOf(`{${many},"k30":1}`)).toEqual([`k30: ${twice}`]);
  });

  test("accepts a duplicate key with the same value", () => {
    expect(parse('{"a":1,"a": 1 ,"b":{"c":[1]},"b":{"c":[1]}}')).toEqual({
      kind: "value",
      value: { a: 1, b: { c: [1] } },
    });
  });

  test("keeps __proto__ and constructor as plain data", () => {
    const result = parse('{"__proto__": {"polluted": true}, "constructor": 1}');
    if (result.kind !== "value") throw new Error(result.kind);
    expect(Object.keys(result.value as object)).toEqual(["__proto__", "constructor"]);
    expect(JSON.stringify(result.value)).toBe('{"__proto__":{"polluted":true},"constructor":1}');
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(faultsOf('{"__proto__":1,"__proto__":2}')[0]).toContain("__proto__: is a duplicate key");
  });

  test("accepts the maximum nesting and not one level more, in objects and in arrays", () => {
    expect(parse(nested(32)).kind).toBe("value");
    expect(faultsOf(nested(33))).toEqual([`${Array(32).fill("a").join(".")}: is nested deeper than 32 levels`]);
    expect(parse(nested(32, "[", "]")).kind).toBe("value");
    expect(faultsOf(nested(33, "[ ", "]"))).toEqual([`${"[0]".repeat(32)}: is nested deeper than 32 levels`]);
    expect(faultsOf(nested(400_000, "[", "]"))).toEqual([`${"[0]".repeat(32)}: is nested deeper than 32 levels`]);
  });

  test.each(["9007199254740993", "1e400", '"\\ud800"'])("accepts %s anywhere", (token) => {
    for (const text of [token, `[0,${token}]`, `{ "n": [ ${token} ] }`]) expect(parse(text).kind, text).toBe("value");
  });

  test("accepts NUL and long strings", () => {
    expect(parse('{"a":"\\u0000"}')).toEqual({ kind: "value", value: { a: "\0" } });
    const long = "x".repeat(100_000);
    expect(parse(`{ "a": "${long}" }`)).toEqual({ kind: "value", value: { a: long } });
  });

  test("describes malformed input", () => {
    for (const text of ["", "{", '{"a":}', "nope", "\ufeff{}", "[1,]", '"\u0001"']) {
      expect(parse(text).kind, text).toBe("malformed");
    }
    expect(parseJson(Buffer.from([0x22, 0xff, 0x22]), { depthMax: 1 })).toEqual({
      kind: "malformed",
      message: "the text is not valid UTF-8",
    });
  });

  test("reports faults of each array element, up to a limit per element", () => {
    const element = `{${Array.from({ length: 50 }, (_, i) => `"a":${i}`).join()}}`;
    const result = parse(`[${element},${element}]`);
    if (result.kind !== "faults") throw new Error(result.kind);
    expect(new Set(result.faults.map(({ field }) => field))).toEqual(new Set(["[0].a", "[1].a"]));
    expect(result.faults.length).toBe(40);
  });
});
