import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { sampleOf, decodeLine } from "./line-text.ts";

const decodeLatin1 = (text: string) => decodeLine(Buffer.from(text, "latin1"));

test.each([
  ["plain", "<13>login failed"],
  ["accents and other alphabets", "<13>Tür geöffnet, дверь открыта, 扉"],
  ["tabs and colours", "<13>a\tb \u001b[31mred\u001b[0m"],
  ["a single bell among many letters", `<13>${"letters ".repeat(5)}\u0007`],
])("text is accepted: %s", (_, text) => {
  expect(decodeLine(Buffer.from(text))).toEqual({ text, isReplaced: false });
});

test("bytes that are not UTF-8 are replaced, and the line is marked", () => {
  expect(decodeLatin1("<13>T\u00fcr ge\u00f6ffnet")).toEqual({ text: "<13>T\ufffdr ge\ufffdffnet", isReplaced: true });
});

test("binary is not text", () => {
  for (let round = 0; round < 200; round++) expect(decodeLine(randomBytes(64 + round))).toBeUndefined();
  expect(decodeLine(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]))).toBeUndefined();
  expect(decodeLatin1("\u00ff\u00fe\u00fd\u00fc a")).toBeUndefined();
});

test("a sample is short and contains no control characters", () => {
  const sample = sampleOf(Buffer.from(`\u001b[2J\0${"é".repeat(1000)}`));
  expect(sample.length).toBe(200);
  expect(sample).toMatch(/^·\[2J·é/);
  expect(sampleOf(`${"a".repeat(199)}😀`).isWellFormed()).toBe(true);
});

test("a sample does not show secrets", () => {
  const redacted = [
    ['{"password":hunter2x}', '{"password":"(hidden)"}'],
    ['{"a":1,"userPass": "x\\"y","b":2}', '{"a":1,"userPass": "(hidden)","b":2}'],
    ['{"pwd":"cut of', '{"pwd":"(hidden)"'],
    ['{"Set-Cookie":["a","b"],"c":1}', '{"Set-Cookie":"(hidden)","c":1}'],
    ['{"credentials":{"a":{"b":1},"c":"x"},"d":1}', '{"credentials":"(hidden)"'],
    ['{"private_key":1,"pin":2,"name":"Hall"}', '{"private_key":"(hidden)","pin":"(hidden)","name":"Hall"}'],
  ] as const;
  for (const [text, sample] of redacted) expect(sampleOf(text)).toBe(sample);
  expect(sampleOf(Buffer.from('{"token":"x"}'))).toBe('{"token":"(hidden)"}');
});
