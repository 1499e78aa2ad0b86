import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Framing, messagesOfDatagram } from "./framing.ts";

interface Cut {
  readonly messages: string[];
  readonly refused: string[];
  readonly passed: number;
  readonly isUnfinished: boolean;
}

function cut(chunks: readonly Buffer[], { bytesMax = 100, counted = true, inOrder = true } = {}): Cut {
  const messages: string[] = [];
  const refused: string[] = [];
  let passed = 0;
  const framing = new Framing(
    { bytesMax, counted },
    {
      take: (message) => void messages.push(message.toString("latin1")),
      refuse: (reason) => void refused.push(reason),
      pass: () => void passed++,
    },
  );
  for (const chunk of chunks) framing.push(chunk);
  const { isUnfinished } = framing;
  framing.end(inOrder);
  return { messages, refused, passed, isUnfinished };
}

const of = (text: string, options = {}) => cut([Buffer.from(text, "latin1")], options);
const long = "x".repeat(150);

describe("a stream is cut into messages", () => {
  test.each([
    ["lines", "<1>a\n<2>b\n", ["<1>a", "<2>b"]],
    ["lines of other systems", "<1>a\r\n<2>b\r\n", ["<1>a", "<2>b"]],
    ["lines that end with NUL", "<1>a\0<2>b\0", ["<1>a", "<2>b"]],
    ["both ends after each other, and empty lines", "<1>a\n\0\n\n<2>b\n", ["<1>a", "<2>b"]],
    ["messages that say their length", "4 <1>a5 <2>bb", ["<1>a", "<2>bb"]],
    ["the same with a line feed inside and one behind", "7 <1>a\nbc6 <2>bb\n", ["<1>a\nbc", "<2>bb"]],
    ["one kind after the other", "4 <1>a<2>b\n5 <3>cc<4>d\n", ["<1>a", "<2>b", "<3>cc", "<4>d"]],
    ["a line that begins with a number", "2026-11-15 up\n12 monkeys\n", ["2026-11-15 up", "12 monkeys"]],
    ["a bare line of a gateway", "0|Vendor|x|1\n", ["0|Vendor|x|1"]],
    ["a length without a priority, after one with", "4 <1>a6 CEF:0|", ["<1>a", "CEF:0|"]],
    ["lengths without a priority", "6 CEF:0|12 0|Vendor|x|1", ["CEF:0|", "0|Vendor|x|1"]],
    ["the same with a line feed behind each", "6 CEF:0|\n12 0|Vendor|x|1\n", ["CEF:0|", "0|Vendor|x|1"]],
    ["the same with the line feed counted", "7 CEF:0|\n8 0|V|x|1\n", ["7 CEF:0|", "8 0|V|x|1"]],
    ["a length without a priority, after a line feed", "4 <1>a\n6 CEF:0|\n5 0|V|x", ["<1>a", "CEF:0|", "0|V|x"]],
    ["one without a priority, then one with", "6 CEF:0|4 <1>a4 <2>b", ["CEF:0|", "<1>a", "<2>b"]],
    ["a number too long for a length", "12345678 <1>a\n", ["12345678 <1>a"]],
    ["a half line at the end", "<1>a\n<2>b", ["<1>a", "<2>b"]],
    ["digits at the end", "<1>a\n12", ["<1>a", "12"]],
  ])("%s", (_, text, messages) => {
    expect(of(text)).toMatchObject({ messages, refused: [] });
  });

  test.each([
    ["a line end before it", "12 monkeys\n7 dwarfs\n"],
    ["a digit where it would end, that is no length", "9 packets 3of them lost\n"],
    ["a number where it would end, that begins with zero", "9 packets, 07 of them lost\n"],
    ["a number too long to be a length there", "9 packets: 123456789 of them\n"],
    ["a word where it would end", "10 packets lost on eth0\n"],
    ["a length that is beyond every limit", "5000 packets lost\n"],
    ["a line that came before", "up\n9 packets, 3 of them lost\n"],
    ["a NUL before it", "12 monkeys\0"],
    ["no end", "12 monkeys"],
  ])("a line that begins with a number is a line: %s", (_, text) => {
    const lines = text.split(/[\n\0]/).filter((line) => line !== "");
    expect(of(text)).toMatchObject({ messages: lines, refused: [] });
    expect(of(`${text}4 <1>a<2>b\n`).messages.slice(0, lines.length - 1)).toEqual(lines.slice(0, -1));
  });

  test("a message without a priority that is as long as it says is whole, however the stream ends", () => {
    expect(of("6 CEF:0|")).toMatchObject({ messages: ["CEF:0|"], isUnfinished: true });
    expect(of("6 CEF:0|", { inOrder: false })).toMatchObject({ messages: ["CEF:0|"], refused: [] });
    expect(of("7 CEF:0|", { inOrder: false })).toMatchObject({ messages: [], refused: ["cut_off"] });
  });

  test.each([
    ["none but the one that a message may end with", "<1>a\n\0<2>b\r\n\r\n4 <3>c\n", 0],
    ["those beyond it", "<1>a\n\n\n\0<2>b\n", 2],
    ["those that stand alone", "\n\r\n\0", 3],
    ["what is nothing but line ends, by its length", "1 <2 \n\n2 \n\n", 1],
  ])("empty lines are told of: %s", (_, text, passed) => {
    expect(of(text).passed).toBe(passed);
  });

  test("JSON lines never say a length", () => {
    expect(of("4 <1>a\n", { counted: false }).messages).toEqual(["4 <1>a"]);
  });
});

describe("what cannot be used", () => {
  test("a line that is too long is skipped up to its end, and the next one is read", () => {
    expect(of(`<1>a\n${long}\n<2>b\n`)).toMatchObject({ messages: ["<1>a", "<2>b"], refused: ["too_long"] });
  });

  test("the same for a message that says a length that is too long", () => {
    expect(of(`150 <1>${long.slice(3)}4 <2>b`)).toMatchObject({ messages: ["<2>b"], refused: ["too_long"] });
  });

  test("a message that is shorter than it says is cut off", () => {
    expect(of("20 <1>abc")).toMatchObject({ messages: [], refused: ["cut_off"], isUnfinished: true });
  });

  test("a half line where the connection broke is cut off", () => {
    expect(of("<1>a\n<2>b", { inOrder: false })).toMatchObject({ messages: ["<1>a"], refused: ["cut_off"] });
  });

  test("a line without an end is unfinished, whether it is kept or skipped", () => {
    expect(of("<1>a").isUnfinished).toBe(true);
    expect(of(long).isUnfinished).toBe(true);
    expect(of("<1>a\n").isUnfinished).toBe(false);
  });
});

test("however a stream is cut into chunks, the same comes out of it", () => {
  const piece = fc.oneof(
    fc.constantFrom("\n", "\r\n", "\0", " ", "<", "<13>", "7 ", "12 <", "150 <", "0|", long),
    fc.string({ maxLength: 20 }),
    fc.string({ maxLength: 30 }).map((text) => `${Buffer.byteLength(`<1>${text}`)} <1>${text}`),
    fc.string({ minLength: 1, maxLength: 30 }).map((text) => `${Buffer.byteLength(text)} ${text}`),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(60), { maxLength: 60 }), (pieces, sizes) => {
      const whole = Buffer.from(pieces.join(""));
      const chunks: Buffer[] = [];
      let at = 0;
      for (const size of sizes) {
        chunks.push(whole.subarray(at, at + size));
        at += size;
      }
      chunks.push(whole.subarray(at));
      expect(cut(chunks)).toEqual(cut([whole]));
    }),
    { numRuns: 500 },
  );
});

test("messages without a priority come out as they went in, however the stream is cut into chunks", () => {
  const message = fc
    .tuple(fc.constantFrom("0|V|", "CEF:0|V|", "Nov 15 10:00:00 gw "), fc.stringMatching(/^[ -~]{0,40}$/))
    .map(([beginning, rest]) => beginning + rest);
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 8 }),
      fc.constantFrom("", "\n"),
      fc.integer({ min: 1, max: 40 }),
      (messages, end, size) => {
        const whole = Buffer.from(messages.map((text) => `${text.length} ${text}${end}`).join(""));
        const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, index) =>
          whole.subarray(index * size, (index + 1) * size),
        );
        expect(cut(chunks)).toMatchObject({ messages, refused: [] });
      },
    ),
    { numRuns: 300 },
  );
});

describe("a datagram", () => {
  const texts = (text: string) => messagesOfDatagram(Buffer.from(text)).map(String);

  test("is one message, whatever lines it has", () => {
    expect(texts("<1>a trace\n  at b\n  at c\n")).toEqual(["<1>a trace\n  at b\n  at c"]);
    expect(texts("\n\0")).toEqual([]);
  });

  test("is several where each line has a priority", () => {
    expect(texts("<1>a\n<22>b\r\n\n<191>c\n")).toEqual(["<1>a", "<22>b", "<191>c"]);
  });
});
