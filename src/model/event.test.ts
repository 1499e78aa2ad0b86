import { expect, test } from "vitest";
import { classOfType } from "./event.ts";

test.each([
  ["wan_failover", "network"],
  ["login_failure", "security"],
  ["backup_failed", "security"],
  ["sip_registration_failed", "security"],
  ["config_changed", "audit"],
  ["access_denied", "security"],
  ["access_granted", "audit"],
  ["wan_link_down", "network"],
  ["something_new", "security"],
  ["rogue_access_point", "security"],
  ["rogue_dhcp", "security"],
  ["dhcp_exhausted", "network"],
  ["doorbell", "security"],
  ["camera_online", "security"],
  ["session_closed", "audit"],
])("%s has the class %s", (type, expected) => expect(classOfType(type)).toBe(expected));

test("the class stated by a device counts only for types of its own", () => {
  expect(classOfType("rogue_dhcp", "network")).toBe("security");
  expect(classOfType("ap_channel_changed", "network")).toBe("network");
});
