import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageFraming, messagesOfDatagram } from "./framing.ts";

interface Split {
  readonly messages: string[];
  readonly refused: string[];
  readonly empty: number;
  readonly isIncomplete: boolean;
}

function split(chunks: readonly Buffer[], { bytesMax = 100, counted = true, isOrderly = true } = {}): Split {
  const messages: string[] = [];
  const refused: string[] = [];
  let empty = 0;
  const framing = new MessageFraming(
    { bytesMax, counted },
    {
      take: (message) => void messages.push(message.toString("latin1")),
      refuse: (reason) => void refused.push(reason),
      skipEmpty: () => void empty++,
    },
  );
  for (const chunk of chunks) framing.push(chunk);
  const { isIncomplete } = framing;
  framing.end(isOrderly);
  return { messages, refused, empty, isIncomplete };
}

const of = (text: string, options = {}) => split([Buffer.from(text, "latin1")], options);
const long = "x".repeat(150);

describe("a stream is split into messages", () => {
  test.each([
    ["lines", "<1>a\n<2>b\n", ["<1>a", "<2>b"]],
    ["lines with CRLF", "<1>a\r\n<2>b\r\n", ["<1>a", "<2>b"]],
    ["lines that end with NUL", "<1>a\0<2>b\0", ["<1>a", "<2>b"]],
    ["both line ends in a row, and empty lines", "<1>a\n\0\n\n<2>b\n", ["<1>a", "<2>b"]],
    ["messages that state their length", "4 <1>a5 <2>bb", ["<1>a", "<2>bb"]],
    ["the same with a line feed inside and one after", "7 <1>a\nbc6 <2>bb\n", ["<1>a\nbc", "<2>bb"]],
    ["both framings mixed", "4 <1>a<2>b\n5 <3>cc<4>d\n", ["<1>a", "<2>b", "<3>cc", "<4>d"]],
    ["a line that starts with a number", "2026-11-15 up\n12 monkeys\n", ["2026-11-15 up", "12 monkeys"]],
    ["a bare line of a gateway", "0|Vendor|x|1\n", ["0|Vendor|x|1"]],
    ["a length without a priority, after one with", "4 <1>a6 CEF:0|", ["<1>a", "CEF:0|"]],
    ["lengths without a priority", "6 CEF:0|12 0|Vendor|x|1", ["CEF:0|", "0|Vendor|x|1"]],
    ["the same with a line feed after each", "6 CEF:0|\n12 0|Vendor|x|1\n", ["CEF:0|", "0|Vendor|x|1"]],
    ["the same with the line feed counted", "7 CEF:0|\n8 0|V|x|1\n", ["7 CEF:0|", "8 0|V|x|1"]],
    ["a length without a priority, after a line feed", "4 <1>a\n6 CEF:0|\n5 0|V|x", ["<1>a", "CEF:0|", "0|V|x"]],
    ["one without a priority, then one with", "6 CEF:0|4 <1>a4 <2>b", ["CEF:0|", "<1>a", "<2>b"]],
    ["a number too long for a length", "12345678 <1>a\n", ["12345678 <1>a"]],
    ["a partial line at the end", "<1>a\n<2>b", ["<1>a", "<2>b"]],
    ["digits at the end", "<1>a\n12", ["<1>a", "12"]],
  ])("%s", (_, text, messages) => {
    expect(of(text)).toMatchObject({ messages, refused: [] });
  });

  test.each([
    ["a line end before it", "12 monkeys\n7 dwarfs\n"],
    ["a digit after it that is not a length", "9 packets 3of them lost\n"],
    ["a number after it that starts with zero", "9 packets, 07 of them lost\n"],
    ["a number after it that is too long for a length", "9 packets: 123456789 of them\n"],
    ["a word after it", "10 packets lost on eth0\n"],
    ["a length beyond the limit", "5000 packets lost\n"],
    ["an earlier line", "up\n9 packets, 3 of them lost\n"],
    ["a NUL before it", "12 monkeys\0"],
    ["no line end", "12 monkeys"],
  ])("a line that starts with a number does not state its length: %s", (_, text) => {
    const lines = text.split(/[\n\0]/).filter((line) => line !== "");
    expect(of(text)).toMatchObject({ messages: lines, refused: [] });
    expect(of(`${text}4 <1>a<2>b\n`).messages.slice(0, lines.length - 1)).toEqual(lines.slice(0, -1));
  });

  test("a message without a priority that has its stated length is complete, however the stream ends", () => {
    expect(of("6 CEF:0|")).toMatchObject({ messages: ["CEF:0|"], isIncomplete: true });
    expect(of("6 CEF:0|", { isOrderly: false })).toMatchObject({ messages: ["CEF:0|"], refused: [] });
    expect(of("7 CEF:0|", { isOrderly: false })).toMatchObject({ messages: [], refused: ["cut_off"] });
  });

  test.each([
    ["none for the line end of a message", "<1>a\n\0<2>b\r\n\r\n4 <3>c\n", 0],
    ["those after the line end", "<1>a\n\n\n\0<2>b\n", 2],
    ["those without a message", "\n\r\n\0", 3],
    ["a counted message of line ends only", "1 <2 \n\n2 \n\n", 1],
  ])("empty lines are counted: %s", (_, text, empty) => {
    expect(of(text).empty).toBe(empty);
  });

  test("JSON lines never state a length", () => {
    expect(of("4 <1>a\n", { counted: false }).messages).toEqual(["4 <1>a"]);
  });
});

describe("unusable messages", () => {
  test("an overlong line is skipped, and the next one is read", () => {
    expect(of(`<1>a\n${long}\n<2>b\n`)).toMatchObject({ messages: ["<1>a", "<2>b"], refused: ["too_long"] });
  });

  test("a message with an excessive length is skipped", () => {
    expect(of(`150 <1>${long.slice(3)}4 <2>b`)).toMatchObject({ messages: ["<2>b"], refused: ["too_long"] });
  });

  test("a message shorter than its stated length is cut off", () => {
    expect(of("20 <1>abc")).toMatchObject({ messages: [], refused: ["cut_off"], isIncomplete: true });
  });

  test("a partial line is cut off when the connection breaks", () => {
    expect(of("<1>a\n<2>b", { isOrderly: false })).toMatchObject({ messages: ["<1>a"], refused: ["cut_off"] });
  });

  test("a line without an end is incomplete, whether it is held or skipped", () => {
    expect(of("<1>a").isIncomplete).toBe(true);
    expect(of(long).isIncomplete).toBe(true);
    expect(of("<1>a\n").isIncomplete).toBe(false);
  });
});

test("the messages do not depend on how the stream is chunked", () => {
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
      expect(split(chunks)).toEqual(split([whole]));
    }),
    { numRuns: 500 },
  );
});

test("messages without a priority are split correctly, however the stream is chunked", () => {
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
        expect(split(chunks)).toMatchObject({ messages, refused: [] });
      },
    ),
    { numRuns: 300 },
  );
});

describe("a datagram", () => {
  const texts = (text: string) => messagesOfDatagram(Buffer.from(text)).map(String);

  test("is one message, however many lines it has", () => {
    expect(texts("<1>a trace\n  at b\n  at c\n")).toEqual(["<1>a trace\n  at b\n  at c"]);
    expect(texts("\n\0")).toEqual([]);
  });

  test("is several messages if each line has a priority", () => {
    expect(texts("<1>a\n<22>b\r\n\n<191>c\n")).toEqual(["<1>a", "<22>b", "<191>c"]);
  });
});
