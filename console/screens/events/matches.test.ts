import { expect, test } from "vitest";
import type { Event } from "../../data/client.ts";
import { readConditions } from "./filter-text.ts";
import { eventMatcher } from "./matches.ts";

const event: Event = {
  id: "evt_1",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "medium",
  timestamp: "2026-11-15T08:30:00.000Z",
  raw: { user: "Ada", src_ip: "10.20.3.240", dst_port: 443, tags: ["a", "b"], deep: { er: [{ x: 1 }] }, "a.b": true },
  enrichment: { geo: { country: "VN" } },
};

test.each([
  ["raw.user=Ada", true],
  ["raw.user=ada", false],
  ["raw.user=a*", true],
  ["raw.user=A?a", true],
  ["raw.user=\\\\*", false],
  ["raw.user~DA", true],
  ["raw.user!~DA", false],
  ["raw.user=*", true],
  ["raw.none=*", false],
  ["raw.none!=*", true],
  ["raw.none!=x", true],
  ["raw.user=root,raw.user=Ada", true],
  ["raw.user=root,raw.dst_port=443", false],
  ["raw.dst_port=443", true],
  ["raw.dst_port>442", true],
  ["raw.dst_port<=442", false],
  ["raw.user>1", false],
  ["raw.src_ip=10.20.0.0/16", true],
  ["raw.src_ip=10.21.0.0/16", false],
  ["raw.src_ip=10.20.3.240/32", true],
  ["raw.src_ip=::/0", false],
  ["raw.src_ip!=10.0.0.0/8", false],
  ["raw.tags=b", true],
  ["raw.deep.er.x=1", true],
  ["raw.a.b=true", true],
  ["enrichment.geo.country=VN", true],
  ["type!=motion,severity=medium", true],
  ["entity=address:10.20.3.240", true],
  ["entity!=user:Ada", false],
  ["entity=user:root", false],
])("%s: %s", (filter, expected) => {
  expect(eventMatcher(readConditions(filter))(event)).toBe(expected);
});

test("networks of IPv6", () => {
  const six = { ...event, raw: { src_ip: "2001:db8:666::17" } };
  expect(eventMatcher(readConditions("raw.src_ip=2001:db8:660::/44"))(six)).toBe(true);
  expect(eventMatcher(readConditions("raw.src_ip=2001:db8:700::/44"))(six)).toBe(false);
});
