import * as fc from "fast-check";
import { expect, test } from "vitest";
import { secretsOfAddress, withoutSecrets } from "./redact.ts";

const hide = (text: string, address: string) => withoutSecrets(text, secretsOfAddress(address));

test("whatever the address is, its path is not left in a text, encoded or not", () => {
  const part = fc.string({ unit: "grapheme", minLength: 9, maxLength: 40 }).filter((text) => /^\S+$/.test(text));
  fc.assert(
    fc.property(part, part, (segment, value) => {
      const address = new URL(`https://hooks.example/in/${encodeURIComponent(segment)}?t=${encodeURIComponent(value)}`);
      const { pathname, search } = address;
      const whole = pathname + search;
      const said = [
        ...[whole, encodeURIComponent(whole), whole.toLowerCase()].map((path) => `a ${path} b`),
        `a ${encodeURIComponent(segment)} b ${value} c`,
      ];
      // In one text, because compiling the patterns of an address takes milliseconds.
      expect(hide(said.join("\n"), address.href).split("\n")).toEqual([
        "a (hidden) b",
        "a (hidden) b",
        "a (hidden) b",
        "a (hidden) b (hidden) c",
      ]);
    }),
    { examples: [["!!!!!ᚁ!!!", "!!!!!!¡!%"]] },
  );
});

test("an address without anything secret hides nothing, and one that cannot be read hides itself", () => {
  const text = "https://hooks.example/ answered: not a/b/c today";
  expect(hide(text, "https://hooks.example/")).toBe(text);
  expect(hide("Invalid URL: no address at all", "no address at all")).toBe("Invalid URL: (hidden)");
});

test("of a secret that is longer than is looked for, no end is left", () => {
  const long = "x1".repeat(3000);
  expect(hide(`a /${long} b`, `https://hooks.example/${long}`)).toBe("a (hidden) b");
});

test("a token in the place of a user is hidden, also as it is sent", () => {
  const sent = Buffer.from("tok:").toString("base64");
  expect(hide(`Basic ${sent}`, "https://tok@hooks.example/")).toBe("Basic (hidden)");
});
