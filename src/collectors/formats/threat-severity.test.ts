import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../model/event.ts";
import { rateThreat } from "./threat-severity.ts";

const INSIDE = "10.9.3.20";
const OUTSIDE = "192.0.2.200";
const incoming = { src_ip: OUTSIDE, dst_ip: INSIDE };
const outgoing = { src_ip: INSIDE, dst_ip: OUTSIDE };
const rate = (raw: JsonObject, priority: unknown = 1, alert: JsonObject = {}) =>
  rateThreat({ ...raw }, priority, alert);

describe("severity of intrusion reports", () => {
  test("a blocked attempt from outside is one step lower; one from inside is not", () => {
    const attempt = { category: "attempted-admin" };
    expect(rate({ ...incoming, ...attempt, action: "allow" })).toBe("critical");
    expect(rate({ ...incoming, ...attempt, action: "block" })).toBe("high");
    expect(rate({ ...outgoing, ...attempt, action: "block" })).toBe("critical");
  });

  test("blocking does not lower the severity of a compromised host", () => {
    expect(rate({ ...outgoing, category: "trojan-activity", action: "block" })).toBe("critical");
  });

  test("a scan from outside is lowered, one from inside less", () => {
    expect(rate({ ...incoming, category: "attempted-recon", action: "allow" }, 2)).toBe("medium");
    expect(rate({ ...outgoing, category: "attempted-recon", action: "allow" }, 2)).toBe("high");
    expect(rate({ src_ip: INSIDE, dst_ip: "10.9.3.21", category: "network-scan" }, 2)).toBe("high");
  });

  test.each([
    "ET CINS Active Threat Intelligence Poor Reputation IP group 55",
    "ET DROP Spamhaus DROP Listed Traffic Inbound group 7",
  ])("a listed address is rated by direction and action: %s", (signature) => {
    const listed = { signature, category: "misc-attack" };
    expect(rate({ ...incoming, ...listed, action: "block" }, 2)).toBe("low");
    expect(rate({ ...incoming, ...listed, action: "allow" }, 2)).toBe("medium");
    expect(rate({ ...outgoing, ...listed, action: "block" }, 2)).toBe("medium");
    expect(rate({ ...outgoing, ...listed, action: "allow" }, 2)).toBe("high");
  });

  test("groups of one list share its name, and the site's own address is set", () => {
    const name = (group: number, ends: JsonObject) => {
      const raw: JsonObject = {
        ...ends,
        signature: `ET CINS Active Threat Intelligence Poor Reputation IP group ${group}`,
      };
      rateThreat(raw, 2);
      return [raw["reputation_list"], raw["local_ip"]];
    };
    expect(name(1, incoming)).toEqual(["ET CINS", INSIDE]);
    expect(name(99, outgoing)).toEqual(["ET CINS", INSIDE]);
    expect(name(2, { src_ip: OUTSIDE, dst_ip: "198.51.100.7" })).toEqual(["ET CINS", undefined]);
  });

  test("the author's rating limits the severity", () => {
    const raw = { ...outgoing, category: "trojan-activity", action: "allow" };
    const said = (metadata: JsonObject) => rate(raw, 1, { metadata });
    expect(said({ signature_severity: ["Informational"] })).toBe("low");
    expect(said({ signature_severity: ["Minor"] })).toBe("medium");
    expect(said({ signature_severity: ["Major"] })).toBe("critical");
    expect(said({ signature_severity: ["Major"], confidence: ["Low"] })).toBe("high");
    expect(said({ signature_severity: "Minor" })).toBe("medium");
    expect(said({ signature_severity: ["constructor"] })).toBe("critical");
  });

  test("no severity exceeds the priority", () => {
    for (const category of ["policy-violation", "trojan-activity", "attempted-recon", "misc-activity", "unheard-of"]) {
      expect(rate({ ...outgoing, category, action: "allow" }, 4)).toBe("low");
    }
  });
});
