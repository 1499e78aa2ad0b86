import * as fc from "fast-check";
import { expect, test } from "vitest";
import { secretsOfAddress, withoutSecrets } from "./redact.ts";

const hide = (text: string, address: string) => withoutSecrets(text, secretsOfAddress(address));

test("the path of any URL is redacted from a text, encoded or not", () => {
  const part = fc.string({ unit: "grapheme", minLength: 9, maxLength: 40 }).filter((text) => /^\S+$/.test(text));
  fc.assert(
    fc.property(part, part, (segment, value) => {
      const address = new URL(`https://hooks.example/in/${encodeURIComponent(segment)}?t=${encodeURIComponent(value)}`);
      const { pathname, search } = address;
      for (const said of [
        pathname + search,
        encodeURIComponent(pathname + search),
        (pathname + search).toLowerCase(),
      ]) {
        expect(hide(`a ${said} b`, address.href)).toBe("a (hidden) b");
      }
      expect(hide(`a ${encodeURIComponent(segment)} b ${value} c`, address.href)).toBe("a (hidden) b (hidden) c");
    }),
    { examples: [["!!!!!ᚁ!!!", "!!!!!!¡!%"]] },
  );
});

test("a URL without a secret redacts nothing, and an invalid URL redacts itself", () => {
  const text = "https://hooks.example/ answered: not a/b/c today";
  expect(hide(text, "https://hooks.example/")).toBe(text);
  expect(hide("Invalid URL: no address at all", "no address at all")).toBe("Invalid URL: (hidden)");
});

test("nothing remains of a secret that is longer than its pattern", () => {
  const long = "x1".repeat(3000);
  expect(hide(`a /${long} b`, `https://hooks.example/${long}`)).toBe("a (hidden) b");
});

test("a token in the user part is redacted, also in the form of a header", () => {
  const sent = Buffer.from("tok:").toString("base64");
  expect(hide(`Basic ${sent}`, "https://tok@hooks.example/")).toBe("Basic (hidden)");
});
