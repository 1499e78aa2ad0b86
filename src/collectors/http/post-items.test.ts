import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { POST_ITEMS_MAX, splitPostBody } from "./post-items.ts";

const read = (text: string, itemBytesMax: number) =>
  splitPostBody("talk", { isLines: false, bytes: Buffer.from(text) }, itemBytesMax);

describe("a body that is too large to be parsed at once", () => {
  test("has the same items as when parsed at once, however it is written", async () => {
    const spaces = fc.constantFrom(undefined, 1, "\t");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 20 }), spaces, async (values, space) => {
        const text = JSON.stringify(values, undefined, space);
        const bytesMax = Buffer.byteLength(text);
        const outcome = await read(`${" ".repeat(bytesMax)}${text}\n`, bytesMax);
        const items = (parseExact(text) as unknown[]).map((value) => ({ kind: "value", value }));
        expect(outcome).toMatchObject({ kind: "items", items });
      }),
    );
  });

  test("yields to other work while it is read", async () => {
    const piece = JSON.stringify("x".repeat(1_000_000));
    let turns = 0;
    const turn = () => {
      turns++;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    const outcome = await read(`[${Array.from({ length: 20 }, () => piece).join(",")}]`, 1_048_576);
    clearImmediate(next);
    expect(outcome.kind).toBe("items");
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test.each([
    ['[{"a":1},{"b":"]},"},3]', 3],
    ['["\\\\","\\"",",[{"]', 3],
    ["[     ]", "empty"],
    ["[1,2,]     ", "malformed"],
    ["[,1]       ", "malformed"],
    ["[{} {}]    ", "malformed"],
    ["[1,2       ", "malformed"],
    ["[1]]       ", "malformed"],
    ["[1}        ", "malformed"],
    ['["\\"      ', "malformed"],
    ["[{]},1]    ", "malformed"],
    ['{"a":1}    ', 1],
    [`[${"1,".repeat(POST_ITEMS_MAX)}1]`, "too_many"],
  ])("%s", async (text, expected) => {
    const outcome = await read(text, 10);
    expect(outcome.kind === "items" ? outcome.items.length : outcome.kind).toBe(expected);
  });

  test("deep nesting is skipped like any other item", async () => {
    const deep = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
    const outcome = await read(`[1,${deep},2]`, 100);
    expect(outcome).toMatchObject({
      items: [{ kind: "value" }, { kind: "refused", reason: "too_long" }, { kind: "value" }],
    });
  });
});
