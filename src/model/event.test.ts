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
])("%s is of the class %s", (type, expected) => expect(classOfType(type)).toBe(expected));
