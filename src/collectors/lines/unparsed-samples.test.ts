import { describe, expect, test } from "vitest";
import { redactSecretsInText } from "../formats/redact-secrets.ts";
import { UnparsedSamples } from "./unparsed-samples.ts";

function samplesOf(messages: readonly string[]) {
  const samples = new UnparsedSamples();
  for (const [index, message] of messages.entries())
    samples.add({ line: `shop: ${message}`, program: "shop", message }, index);
  return samples.list();
}

describe("samples of lines that no format understood", () => {
  test("show each kind once, with its newest line, the most frequent first", () => {
    expect(samplesOf(["sold 4 of 12:30", "opened", "sold 17 of 9:00", "sold 5 of 11:11"])).toEqual([
      { text: "shop: sold 5 of 11:11", program: "shop", atMs: 3, lines: 3 },
      { text: "shop: opened", program: "shop", atMs: 1, lines: 1 },
    ]);
  });

  test("are few and short, and a rare kind gives way to a new one", () => {
    const kinds = ["a", "b", "c", "d", "e", "f"].map((kind) => `${kind}${"x".repeat(300)}`);
    const samples = samplesOf([...kinds.slice(1), kinds[0]!, ...kinds.slice(1), ...kinds.slice(1)]);
    expect(samples).toHaveLength(5);
    for (const { text } of samples) expect(text).toHaveLength(200);
    expect(samples.map(({ text }) => text[6]).sort()).toEqual(["b", "c", "d", "e", "f"]);
  });

  test.each([
    ["user=ann password=hunter2 src=192.0.2.1", "user=ann password=(hidden) src=192.0.2.1"],
    ['api_key="a b", x=1', "api_key=(hidden), x=1"],
    ["Authorization: Bearer abc.def x", "Authorization: (hidden) x"],
    ["GET https://ann:secret@shop.example/x", "GET https://ann:(hidden)@shop.example/x"],
    ["Failed password for root from 192.0.2.1", "Failed password for root from 192.0.2.1"],
  ])("hide secrets: %s", (line, shown) => {
    expect(redactSecretsInText(line)).toBe(shown);
  });
});
