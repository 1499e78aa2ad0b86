import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { SEVERITIES, type JsonObject, type JsonValue } from "../../model/event.ts";
import { CONTEXT, eventsOf, onlyEvent } from "./context.fixture.ts";
import { readEve } from "./eve/eve.ts";
import { readLine } from "./read-line.ts";
import type { ParsedEvent } from "./reading.ts";
import { OpenEvents } from "./unifi/open-events.ts";
import { readBody, type BodyName } from "./unifi/webhooks.ts";

// Captures of real devices, if the folder beside the project is there; it is not part of the project.

const folder = fileURLToPath(new URL("../../../../shared/data/events/", import.meta.url));
const isHere = existsSync(folder);
const text = (path: string) => readFileSync(`${folder}${path}`, "utf8");
const lines = (path: string) =>
  text(path)
    .split("\n")
    .filter((line) => line.trim() !== "");
const json = (path: string) => JSON.parse(text(path)) as JsonValue;
const paths = (): string[] => Object.keys((JSON.parse(text("index.json")) as { files: JsonObject }).files);

const bodyName = (path: string): BodyName => /unifi-(network|protect|access|talk)/.exec(path)![1] as BodyName;

/** The events of a file, each item read as if it were the first. */
function readFile(path: string): (ParsedEvent | undefined)[] {
  if (path.endsWith(".log")) return lines(path).map((line) => onlyEvent(readLine(line, CONTEXT)));
  const bodies = path.endsWith(".ndjson")
    ? lines(path).map((line) => JSON.parse(line) as JsonValue)
    : [json(path)].flat();
  if (path.startsWith("suricata/")) return bodies.map((body) => onlyEvent(readEve(JSON.stringify(body), CONTEXT)));
  return bodies.map((body) => eventsOf(readBody(bodyName(path), body, CONTEXT, new OpenEvents()))[0]);
}

describe.skipIf(!isHere)(`samples of real devices${isHere ? "" : " (skipped: the folder is missing)"}`, () => {
  test("each item becomes an event, except keep-alives", () => {
    const silent = paths().flatMap((path) =>
      readFile(path)
        .filter((event) => event === undefined)
        .map(() => path),
    );
    // Two keep-alives of UniFi Access. The lifecycle files have ends and updates without their start.
    expect(silent.filter((path) => !path.includes("lifecycle"))).toEqual(
      Array(2).fill("unifi-access/aiounifiaccess-events.ndjson"),
    );
  });

  test("every line that has a reader is understood", () => {
    const unparsed = paths().flatMap((path) =>
      readFile(path)
        .filter((event) => event?.type === "unparsed")
        .map(() => path),
    );
    expect(unparsed).toEqual(["unifi-network/captured-cef-lines.log"]);
  });

  test("every event has its line, and every IDS alert its ends, signature and severity", () => {
    for (const path of paths()) {
      if (path.endsWith(".log")) {
        expect(readFile(path).map((event) => event!.raw["line"])).toEqual(lines(path));
      }
      if (!path.startsWith("suricata/")) continue;
      for (const event of readFile(path)) {
        expect(event).toMatchObject({
          type: "ids_alert",
          timestampMs: expect.any(Number),
          raw: {
            src_ip: expect.any(String),
            dst_ip: expect.any(String),
            signature_id: expect.any(Number),
            action: "allow",
          },
        });
        expect(event!.raw["category"]).toMatch(/^[a-z0-9-]+$/);
        const { severity } = event!.raw["alert"] as { severity: number };
        expect(SEVERITIES.indexOf(event!.severity)).toBeGreaterThanOrEqual(severity - 1);
        if (event!.raw["category"] === "policy-violation") expect(event!.severity).toBe("medium");
        if (event!.raw["category"] === "trojan-activity") expect(event!.severity).toBe("critical");
      }
    }
  });

  test("lines of consoles have the fields of their text", () => {
    const [threat, change, noAddress, down] = readFile("unifi-network/captured-cef-lines.log");
    expect(threat).toMatchObject({
      type: "ids_alert",
      severity: "high",
      raw: { src_ip: "198.235.24.95", dst_port: 32_400, action: "block", signature_id: 2_402_000 },
    });
    expect(change).toMatchObject({
      type: "config_changed",
      raw: { user: "Admin A.", setting: "syslog_settings_mode", src_ip: "203.0.113.203" },
    });
    expect(noAddress).toMatchObject({
      type: "ids_alert",
      severity: "critical",
      raw: { src_mac: "02:00:00:18:07:53", host: "labhost" },
    });
    expect(down).toMatchObject({ type: "wan_link_down", raw: { link: "WAN1" } });
    const firewall = readFile("unifi-network/crowdsec-syslog-firewall.log");
    expect(firewall.map((event) => event!.type)).toEqual([
      "firewall_blocked",
      "firewall_blocked",
      "firewall_allowed",
      "login_failure",
    ]);
    expect(firewall[1]!.raw).toMatchObject({
      device: "UDMP-DTC",
      src_ip: "192.168.1.1",
      dst_port: 54_329,
      protocol: "udp",
      bytes: 122,
    });
    expect(firewall[3]!.raw).toMatchObject({ user: "asdasf", src_ip: "192.168.1.2", service: "ssh" });
  });

  test("the frames of a detection, and the history of a console, in one body", () => {
    const life = eventsOf(
      readBody("protect", json("unifi-protect/events_ws_public-smartdetect_lifecycle.json"), CONTEXT, new OpenEvents()),
    );
    expect(life.map(({ type }) => type)).toEqual(["person", "vehicle", "detection_ended"]);
    expect(life[2]!.raw).toMatchObject({ duration_s: 10, detections: ["person", "vehicle"] });
    const history = json("unifi-protect/uiprotect-sample_raw_events.json") as JsonValue[];
    const events = eventsOf(readBody("protect", history, CONTEXT, new OpenEvents()));
    expect(events.length).toBeGreaterThanOrEqual(history.length);
    const count = (type: string) => events.filter((event) => event.type === type).length;
    expect([count("camera_offline"), count("camera_online"), count("sensor_motion"), count("doorbell")]).toEqual([
      6, 3, 546, 3,
    ]);
  });

  test("doors and telephones", () => {
    const log = readFile("unifi-access/logs-add-shape.ndjson").map((event) => event!.type);
    expect(log).toEqual(["access_granted", "access_denied", "access_incomplete", "access_denied"]);
    const calls = readFile("unifi-talk/talk-call-records.ndjson");
    expect(calls.every((event) => event!.source === "talk" && typeof event!.raw["to"] === "string")).toBe(true);
  });
});
