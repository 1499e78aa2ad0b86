import { describe, expect, test } from "vitest";
import { actionOf, addressOf, integerOf, macOf, numberOf, portOf, secondsOf, typeOf } from "./device-values.ts";

describe("values are converted to the types of well-known fields", () => {
  test.each([
    ["1234", 1234],
    ["1,234", 1234],
    ["1.234", 1234],
    ["1 234 567", 1_234_567],
    ["1\u202f234", 1234],
    ["1’234", 1234],
    ["١٢٣٤", 1234],
    ["12,34", undefined],
    ["-5", undefined],
    ["0x10", undefined],
    ["", undefined],
    ["1e3", undefined],
    [7, 7],
    [7.5, undefined],
  ])("integer %j", (value, expected) => expect(integerOf(value)).toBe(expected));

  test.each([
    ["62.5", 62.5],
    ["62,5", 62.5],
    ["1,234.5", 1234.5],
    ["1.234,5", 1234.5],
    ["-61", -61],
    ["-61,25", -61.25],
    ["five", undefined],
    ["1.2.3", undefined],
  ])("number %j", (value, expected) => expect(numberOf(value)).toBe(expected));

  test.each([
    ["443", 443],
    ["32,400", 32_400],
    ["65536", undefined],
    ["http", undefined],
    [65_535, 65_535],
  ])("port %j", (value, expected) => expect(portOf(value)).toBe(expected));

  test.each([
    ["02:00:00:AA:BB:CC", "02:00:00:aa:bb:cc"],
    ["02-00-00-aa-bb-cc", "02:00:00:aa:bb:cc"],
    ["020000AABBCC", "02:00:00:aa:bb:cc"],
    ["02:00:00:aa:bb", undefined],
    ["zz:00:00:aa:bb:cc", undefined],
  ])("hardware address %j", (value, expected) => expect(macOf(value)).toBe(expected));

  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["192.0.2.999", undefined],
    ["54.36.xxx.xxx", undefined],
    ["010.0.0.1", undefined],
    ["gateway", undefined],
  ])("address %j", (value, expected) => expect(addressOf(value)).toBe(expected));

  test.each([
    ["42s", 42],
    ["18m 4s", 1084],
    ["1h 2m", 3720],
    ["250 ms", 0.25],
    ["17", 17],
    ["long", undefined],
  ])("seconds %j", (value, expected) => expect(secondsOf(value)).toBe(expected));

  test.each([
    ["Blocked", "block"],
    ["DROP", "block"],
    ["allowed", "allow"],
    ["rejected", "reject"],
    ["discard", "block"],
    ["Prevented", "block"],
    ["Quarantined", "block"],
    ["refused", "reject"],
    ["reset", "reject"],
    ["reset-both", "reject"],
    ["log and drop", "block"],
    ["not allowed", undefined],
    ["tagged", undefined],
    ["constructor", undefined],
  ])("action %j", (value, expected) => expect(actionOf(value)).toBe(expected));

  test.each([
    ["AP Channel Change", "ap_channel_change"],
    ["smartDetectLoiter", "smart_detect_loiter"],
    ["access.future.new_event", "access_future_new_event"],
    ["UPnP", "upnp"],
    ["WiFi and Wi-Fi and PoE", "wifi_and_wifi_and_poe"],
    ["UniFiOS", "unifi_os"],
    ["HiFiTower", "hi_fi_tower"],
    ["  !!  ", "fallback"],
    ["\ud800Über", "über"],
  ])("type of %j", (name, expected) => expect(typeOf(name, "fallback")).toBe(expected));
});
