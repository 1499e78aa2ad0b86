import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { kindOfName } from "./field-values.ts";
import { FIELD_KINDS, Template } from "./template.ts";

/** The fields of a message; undefined if the template does not match. */
function fields(source: string, message: string): Record<string, string> | undefined {
  const template = new Template(source, kindOfName);
  const values: string[] = [];
  if (template.match(message, 0, values) < 0) return undefined;
  return Object.fromEntries(template.fields.map(({ name }, index) => [name, values[index]!]));
}

describe("a template", () => {
  test.each([
    ["Ban {src_ip}", "Ban 192.0.2.1", { src_ip: "192.0.2.1" }],
    ["Ban {src_ip}", "Ban 2001:db8::1 for good", { src_ip: "2001:db8::1" }],
    ["from {src_ip}.", "from 192.0.2.1.", { src_ip: "192.0.2.1" }],
    ["from {src_ip}", "from 2001:db8::1.", { src_ip: "2001:db8::1" }],
    [
      "{src_ip}:{src_port} -> {dst_ip}:{dst_port}",
      "192.0.2.1:80 -> 192.0.2.2:443",
      { src_ip: "192.0.2.1", src_port: "80", dst_ip: "192.0.2.2", dst_port: "443" },
    ],
    ["{src_ip}:{src_port}", "2001:db8::1:5060", { src_ip: "2001:db8::1", src_port: "5060" }],
    [
      "src {in_interface}:{src_ip}/{src_port}",
      "src outside:192.0.2.1/53",
      { in_interface: "outside", src_ip: "192.0.2.1", src_port: "53" },
    ],
    ["user {user:quoted} failed", 'user "a \\"b\\" c" failed', { user: 'a "b" c' }],
    [
      "for {user:greedy} from {src_ip}",
      "for a from 203.0.113.9 from 192.0.2.1",
      { user: "a from 203.0.113.9", src_ip: "192.0.2.1" },
    ],
    [
      "{user:greedy}, {src_mac:word}, {src_ip}",
      "a, 02:00:00:00:00:01, b, 02:00:00:00:00:02, 192.0.2.1",
      { user: "a, 02:00:00:00:00:01, b", src_mac: "02:00:00:00:00:02", src_ip: "192.0.2.1" },
    ],
    ["for {user:greedy} from {src_ip}", "for  from 192.0.2.1", { user: "", src_ip: "192.0.2.1" }],
    ["'{user:sole}' at {src_ip}", "'a b' at 192.0.2.1", { user: "a b", src_ip: "192.0.2.1" }],
    ["for {user:text} from {src_ip}", "for a b from 192.0.2.1", { user: "a b", src_ip: "192.0.2.1" }],
    ["says: {message:rest}", "says: all of it", { message: "all of it" }],
    ["\\{{user}\\}", "{ann}", { user: "ann" }],
    ["{:word} said {message:rest}", "ann said yes", { "": "ann", message: "yes" }],
  ])("%j reads %j", (source, message, expected) => {
    expect(fields(source, message)).toEqual(expected);
  });

  test.each([
    ["Ban {src_ip}", "Ban everybody"],
    ["Ban {src_ip}", "Unban 192.0.2.1"],
    ["for {user} from {src_ip}", "for a b from 192.0.2.1"],
    ["port {src_port} ssh2", "port x ssh2"],
    ["'{user:sole}' at {src_ip} ({call:rest}", "'a' at 192.0.2.1 (b' at 203.0.113.9 (c"],
    ["user {user:quoted}", 'user "never closed'],
  ])("%j does not read %j", (source, message) => {
    expect(fields(source, message)).toBeUndefined();
  });

  test.each([
    ["{a}{b}", "needs text between {a} and the field behind it"],
    ["{a:rest} b", "no text can follow {a:rest}"],
    ["{a:what}", "what is not a kind of field"],
    ["a { b", "has a brace that belongs to no field"],
    ["{a:greedy} ".repeat(17), "has more than 16 greedy fields"],
  ])("%j is refused", (source, message) => {
    expect(() => new Template(source, kindOfName)).toThrow(message);
  });

  test.each([
    ["Ban {src_ip}", "Unban 192.0.2.1", '"Ban " is expected, not "Unban 192.0.2.1"'],
    ["Ban {src_ip}", "Ban everybody", '{src_ip:address} needs an IP address, not "everybody"'],
    ["{user} left", "ann went", '{user:word} needs a word, then " left", not "ann went"'],
    ["for {user:quoted} now", 'for "ann"', 'behind {user:quoted}: " now" is expected, not the end of the message'],
  ])("%j says where %j stops matching", (source, message, words) => {
    expect(new Template(source, kindOfName).explain(message, 0)?.words).toContain(words);
  });

  test("reads what it was filled with, whatever the values are", () => {
    const word = fc.stringMatching(/^[A-Za-z0-9_-]{1,10}$/);
    const kinds = Object.keys(FIELD_KINDS).filter((kind) => !["address", "integer", "quoted", "rest"].includes(kind));
    fc.assert(
      fc.property(fc.array(fc.tuple(word, fc.constantFrom(...kinds)), { minLength: 1, maxLength: 4 }), (parts) => {
        const source = parts.map(([, kind], index) => `{f${index}:${kind}} |${index}| `).join("");
        const message = parts.map(([value], index) => `${value} |${index}| `).join("");
        expect(fields(source, message)).toEqual(
          Object.fromEntries(parts.map(([value], index) => [`f${index}`, value])),
        );
      }),
    );
  });

  test("never throws, and never reads more than there is", () => {
    const sources = [
      "{a} {b}",
      "x{src_ip}:{src_port} {c:greedy} y{d:rest}",
      "{q:quoted},{n:integer}{:text}!",
      "{src_ip}%{e:word}",
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...sources.slice(0, 2), sources[3]!),
        fc.string({ unit: "binary", maxLength: 60 }),
        (source, message) => {
          const values: string[] = [];
          expect(new Template(source, kindOfName).match(message, 0, values)).toBeLessThanOrEqual(message.length);
        },
      ),
    );
  });
});
