import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExact } from "../lib/exact-json.ts";
import { POST_ITEMS_MAX, thingsOf } from "./things.ts";

const read = (text: string, thingBytesMax: number) =>
  thingsOf("talk", { isLines: false, bytes: Buffer.from(text) }, thingBytesMax);

describe("a body that is too large to be parsed at once", () => {
  test("has the same things in it as the whole, however it is written", async () => {
    const spaces = fc.constantFrom(undefined, 1, "\t");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 20 }), spaces, async (values, space) => {
        const text = JSON.stringify(values, undefined, space);
        const bytesMax = Buffer.byteLength(text);
        const outcome = await read(`${" ".repeat(bytesMax)}${text}\n`, bytesMax);
        const things = (parseExact(text) as unknown[]).map((value) => ({ kind: "value", value }));
        expect(outcome).toMatchObject({ kind: "things", things });
      }),
    );
  });

  test("is read in turns with what else there is to do", async () => {
    const piece = JSON.stringify("x".repeat(1_000_000));
    let turns = 0;
    const turn = () => {
      turns++;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    const outcome = await read(`[${Array.from({ length: 20 }, () => piece).join(",")}]`, 1_048_576);
    clearImmediate(next);
    expect(outcome.kind).toBe("things");
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
    expect(outcome.kind === "things" ? outcome.things.length : outcome.kind).toBe(expected);
  });

  test("nesting without end is passed over like anything else", async () => {
    const deep = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
    const outcome = await read(`[1,${deep},2]`, 100);
    expect(outcome).toMatchObject({
      things: [{ kind: "value" }, { kind: "refused", reason: "too_long" }, { kind: "value" }],
    });
  });
});
