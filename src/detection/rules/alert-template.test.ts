import { expect, test } from "vitest";
import type { Event } from "../../model/event.ts";
import { renderTemplate, readFieldsOf } from "./alert-template.ts";

const event = (raw: Event["raw"]): Event => ({
  id: "evt_1",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "high",
  timestamp: "2026-11-15T12:00:00.000Z",
  raw,
  enrichment: { geo: { country: "AT" } },
});
const fill = (template: string, raw: Event["raw"] = {}, charactersMax = 300) =>
  renderTemplate(template, readFieldsOf(event(raw)), charactersMax);

test.each([
  ["Failed logins from {{raw.src_ip}}", { src_ip: "192.0.2.7" }, "Failed logins from 192.0.2.7"],
  ["{{ raw.port }} and {{type}} in {{enrichment.geo.country}}", { port: 22 }, "22 and login_failure in AT"],
  ["{{raw.list}}", { list: [1, "a", true, 1] }, "1, a, true"],
  ["{{raw.list}}", { list: [1, 2, 3, 4, 5, 6] }, "1, 2, 3, 4, 5"],
  ["{{raw.nothing}} {{raw.object}} {{raw.empty}}", { object: { a: 1 }, empty: "" }, "(none) (none) (none)"],
  ["from {{raw.src_ip | raw.src_mac}}", { src_mac: "02:00:00:00:00:0b" }, "from 02:00:00:00:00:0b"],
  ["from {{raw.src_ip|raw.src_mac|type}}", { src_ip: "192.0.2.7", src_mac: "x" }, "from 192.0.2.7"],
  ["{{raw.a | raw.b | type}}", { a: "", b: null }, "login_failure"],
  ["{{raw.a | raw.b}} {{raw.a |}} {{| raw.a}}", {}, "(none) {{raw.a |}} {{| raw.a}}"],
  ["{{not a field}} {{constructor}} {{raw.__proto__.x}}", {}, "{{not a field}} (none) (none)"],
  ["{{raw.a}}", { a: "{{type}} ${1+1} $& $1" }, "{{type}} ${1+1} $& $1"],
  ["{{raw.a}}|", { a: "new\r\nline\tand\u0000 \u001b[31mred" }, "new line and [31mred|"],
  ["{{raw.a}}", { a: "gpj.\u202eexe\u2066x\u2069" }, "gpj.exex"],
])("%s", (template, raw, expected) => {
  expect(fill(template, raw)).toBe(expected);
});

test("long values are truncated individually, and never within a character", () => {
  const filled = fill("{{raw.a}} {{raw.b}}", { a: "😀".repeat(500), b: "end" });
  expect(filled.length).toBeLessThan(220);
  expect(filled.isWellFormed()).toBe(true);
  expect(filled.endsWith("… end")).toBe(true);
});

test("the result is truncated to its limit", () => {
  expect(fill("x".repeat(1000), {}, 300)).toHaveLength(300);
});
