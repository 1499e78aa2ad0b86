import { expect, test } from "vitest";
import { conditionWords, fieldName, phraseText, type ConditionWords } from "./conditions.ts";

const said = (condition: unknown) => phraseText(conditionWords(condition).phrase);

test("a test is said with the name of its field", () => {
  expect(said({ field: "type", in: ["admin_login", "vpn_connected"] })).toBe(
    "the event is admin login or vpn connected",
  );
  expect(said({ field: "raw.src_ip", cidr: "192.0.2.0/24" })).toBe("the source address is in the network 192.0.2.0/24");
  expect(said({ field: "raw.known", equals: false })).toBe("it is not known");
  expect(said({ field: "source", equals: "platform_access" })).toBe("the source is Doors");
  expect(said({ field: "raw.badge", exists: false })).toBe("the badge is missing");
  expect(said({ field: "raw.user", not_in: ["a", "b"], ignore_case: true })).toBe(
    "the person is none of a or b (in upper or lower case)",
  );
  expect(said({ field: "raw.dst_host", ends_with_field: "raw.user" })).toBe("the dst host ends with the person");
  expect(said({ field: "enrichment.lists", equals: "blocked" })).toBe("it is on the watch list blocked");
  expect(said({ keyword: ["mimikatz", "psexec"] })).toBe("any field contains mimikatz or psexec");
});

test("the internal networks have a name, and a long list is cut", () => {
  const networks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
  expect(said({ field: "raw.dst_ip", cidr: networks })).toBe("the destination address is internal");
  expect(said({ field: "raw.dst_port", in: [1, 2, 3, 4, 5, 6, 7, 8] })).toBe(
    "the destination port is 1, 2, 3, 4, 5 or 3 more",
  );
});

test("groups have their conditions under them, and a negation is said once", () => {
  const words: ConditionWords = conditionWords({
    not: { any: [{ field: "raw.a", equals: 1 }, { not: { field: "raw.b", gt: 2 } }] },
  });
  expect(words.phrase).toEqual(["none of these holds:"]);
  expect(words.inner!.map(({ phrase }) => phraseText(phrase))).toEqual(["the a is 1", "the b is not more than 2"]);
});

test("a denied test is said with its own verb", () => {
  const denied = (test: object) => said({ not: { field: "raw.user", ...test } });
  expect(denied({ starts_with: "a" })).toBe("the person does not start with a");
  expect(denied({ regex: "^a" })).toBe("the person does not match the pattern ^a");
  expect(denied({ not_equals: "a" })).toBe("the person is a");
  expect(denied({ exists: true })).toBe("the person is missing");
  expect(denied({ equals: true })).toBe("it is not person");
  expect(said({ not: { keyword: "a" } })).toBe("not: any field contains a");
});

test("what is no condition does no harm", () => {
  expect(said(5)).toBe("5");
  expect(said(null)).toBe("null");
  expect(said({})).toBe("the  …");
  expect(said({ field: "raw.a", constructor: "x" })).toBe("the a …");
});

test("a field has a name in words", () => {
  expect(fieldName("raw.badge_state")).toBe("badge state");
  expect(fieldName("timestamp")).toBe("time");
});
