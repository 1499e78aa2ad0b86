import { formatTime } from "../lib/time.ts";
import { unreachable } from "../lib/unreachable.ts";
import type { CollectName } from "../model/key.ts";

// One fictional sample of each source, to test the path from a device to an event. Each contains a marker by which the event is
// found. Times have a zone, since the zone that the service assumes for other times is not known here.

export const TEST_SOURCES = ["network", "protect", "access", "talk", "custom", "syslog", "cef", "eve"] as const;
export type TestSource = (typeof TEST_SOURCES)[number];

const TALKED_SECONDS = 5;

export type TestSample =
  | { readonly way: "submit"; readonly body: object }
  | { readonly way: "post"; readonly name: CollectName; readonly body: object }
  /** A line for a collector's port; without one, it is posted to `name` over HTTP. */
  | { readonly way: "line"; readonly collector: "syslog" | "eve"; readonly name: CollectName; readonly line: string };

export function testSample(source: TestSource, marker: string, nowMs: number): TestSample {
  const seconds = Math.floor(nowMs / 1000);
  switch (source) {
    case "custom":
      return { way: "submit", body: { type: "test_event", source: "custom", severity: "info", data: { marker } } };
    case "network":
      return {
        way: "post",
        name: "network",
        body: {
          app: "network",
          name: "Admin Accessed UniFi Network",
          message: `A test by ${marker}`,
          severity: 2,
          parameters: { UNIFIcategory: "System", UNIFIhost: "Gateway", src: "192.0.2.10", suser: marker },
        },
      };
    case "protect":
      return {
        way: "post",
        name: "protect",
        body: {
          alarm: { name: `Test ${marker}`, triggers: [{ key: "motion", device: "0200000000AA", timestamp: nowMs }] },
          timestamp: nowMs,
        },
      };
    case "access":
      return {
        way: "post",
        name: "access",
        body: {
          event: "access.door.unlock",
          event_object_id: marker,
          data: {
            location: { id: marker, location_type: "door", name: "Test door" },
            actor: { id: marker, name: "Test person", type: "user" },
            object: { authentication_type: "NFC", result: "Access Granted" },
          },
        },
      };
    case "talk":
      return {
        way: "post",
        name: "talk",
        body: {
          uuid: marker,
          from: "100",
          to: "101",
          direction: "out",
          status: "answered",
          // A call is reported when it ends.
          time: seconds - TALKED_SECONDS,
          duration: TALKED_SECONDS,
        },
      };
    case "syslog":
      return line(
        "syslog",
        `<38>1 ${formatTime(nowMs)} gateway sshd 4242 - - Failed password for ${marker} from 192.0.2.10 port 50000 ssh2`,
      );
    case "cef":
      return line(
        "syslog",
        `<14>${formatTime(nowMs)} gateway CEF:0|Ubiquiti|UniFi Network|9.0.0|546|Admin Accessed UniFi Network|2|` +
          `UNIFIcategory=System UNIFIhost=Gateway src=192.0.2.10 suser=${marker} msg=A test`,
      );
    case "eve":
      return line(
        "eve",
        JSON.stringify({
          timestamp: formatTime(nowMs).replace("Z", "000+0000"),
          event_type: "alert",
          src_ip: "192.0.2.10",
          src_port: 50_000,
          dest_ip: "198.51.100.10",
          dest_port: 443,
          proto: "TCP",
          alert: {
            action: "allowed",
            signature_id: 9_000_001,
            signature: `A test ${marker}`,
            category: "Not Suspicious Traffic",
            severity: 3,
          },
        }),
      );
    default:
      return unreachable(source);
  }
}

function line(name: "syslog" | "eve", text: string): TestSample {
  return { way: "line", collector: name, name, line: text };
}
